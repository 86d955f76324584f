import ReactiveCore
import ReactiveTestSupport
import Synchronization
import Testing

/// Keeps the written text.
private final class Sheet: TextOutputStream, Sendable {
  private let pieces = Mutex<[String]>([])
  let onWrite: @Sendable () -> Void

  init(onWrite: @escaping @Sendable () -> Void = {}) {
    self.onWrite = onWrite
  }

  func write(_ string: String) {
    pieces.withLock { $0.append(string) }
    onWrite()
  }

  func takePieces() -> [String] {
    pieces.withLock { pieces in
      defer { pieces = [] }
      return pieces
    }
  }

  func take() -> [String] {
    takePieces().joined().split(separator: "\n").map(String.init)
  }
}

private final class Flag {
  var isSet = true
}

@Suite struct PrintTests {
  @Test func printsEverythingBeforeItIsPassedOn() {
    let sheet = Sheet()
    let rig = Rig(demand: nil) { $0.print(to: sheet) }
    rig.subscriber.onValue = { [subscriber = rig.subscriber] _ in
      subscriber.subscription?.request(.max(100))
      subscriber.demandPerValue = .unlimited
    }
    rig.subscriber.demandPerValue = .max(2)
    #expect(sheet.take() == ["receive subscription: (Manual)"])
    rig.subscription.request(.max(30))
    rig.subscription.request(.unlimited)
    #expect(sheet.take() == ["request max: (30)", "request unlimited"])
    rig.source.send(1)
    #expect(
      sheet.take() == ["receive value: (1)", "request max: (100)", "request unlimited (synchronous)"])
    rig.source.send(completion: .failure(Oops(number: 3)))
    rig.subscription.cancel()
    #expect(sheet.take() == ["receive error: (Oops(number: 3))", "receive cancel"])
    #expect(
      rig.take() == [
        .subscription("Print"), .requested(.max(30)), .requested(.unlimited), .value(1),
        .requested(.max(100)), .failed(Oops(number: 3)),
      ])
    rig.subscriber.onValue = { _ in }
  }

  @Test func beginsLinesWithThePrefix() {
    let sheet = Sheet()
    let rig = Rig(demand: .max(1)) { $0.print("here", to: sheet) }
    rig.source.send(7)
    rig.source.send(completion: .finished)
    #expect(
      sheet.take() == [
        "here: receive subscription: (Manual)", "here: request max: (1)", "here: receive value: (7)",
        "here: receive finished",
      ])
  }

  /// Combine's operators without state pass their upstream's subscription on.
  @Test func namesTheSubscriptionThatItGets() {
    func name<P: Publisher>(_ make: (ManualPublisher<Int, Oops>) -> P) -> String? {
      let sheet = Sheet()
      let subscription = make(ManualPublisher()).print(to: sheet).sink { _ in
      } receiveValue: { _ in
      }
      defer { subscription.cancel() }
      return sheet.take().first
    }
    let upstream = "receive subscription: (Manual)"
    #expect(name { $0.filter { _ in true } } == upstream)
    #expect(name { $0.compactMap { $0 } } == upstream)
    #expect(name { $0.ignoreOutput() } == upstream)
    #expect(name { $0.map { $0 } } == upstream)
    #expect(name { $0.scan(0, +) } == upstream)
    #expect(name { $0.mapError { $0 } } == upstream)
    #expect(name { $0.tryFilter { _ in true } } == "receive subscription: (TryFilter)")
    #expect(name { $0.tryCompactMap { $0 } } == "receive subscription: (TryCompactMap)")
    #expect(name { $0.removeDuplicates() } == "receive subscription: (RemoveDuplicates)")
    #expect(name { $0.append(1) } == "receive subscription: (Concatenate)")
  }

  @Test func anEmptyDemandReturnedIsNotPrinted() {
    let sheet = Sheet()
    let rig = Rig(demand: .unlimited) { $0.print(to: sheet) }
    _ = sheet.take()
    rig.source.send(1)
    #expect(sheet.take() == ["receive value: (1)"])
  }

  @Test func whatComesAfterTheEndIsPrintedAndGoesNoFurther() {
    let sheet = Sheet()
    let rig = Rig(demand: nil) { $0.print(to: sheet) }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.sendSubscription()
    #expect(
      sheet.take() == [
        "receive subscription: (Manual)", "receive cancel", "receive cancel", "receive value: (1)",
        "receive finished", "receive subscription: (Manual)",
      ])
    #expect(rig.take() == [.subscription("Print"), .cancelled, .cancelled])
  }

  @Test func behavesLikeAnyOperator() {
    expectOrderlyStream(named: "Print") { $0.print(to: Sheet()) }
  }

  @Test func linesAreWrittenWholeAndNoneIsLost() async {
    let sheet = Sheet()
    let subject = CurrentValueSubject<Int, Never>(0)
    let printed = UncheckedBox(subject.print("p", to: sheet))
    let subscriber = TrackingSubscriber<Int, Never>()
    printed.value.subscribe(subscriber)
    let subscription = UncheckedBox(subscriber.subscription!)
    _ = sheet.takePieces()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask { for _ in 0..<250 { subscription.value.request(.max(3)) } }
      }
    }
    let pieces = sheet.takePieces()
    #expect(pieces.filter { $0 == "p: request max: (3)\n" }.count == 1000)
    #expect(pieces.count == 1001)
    subscriber.subscription?.cancel()
  }

  @Test func theStreamMayTouchThePipeline() {
    let holder = UncheckedBox(TrackingSubscriber<Int, Never>())
    let isFirst = UncheckedBox(Flag())
    let sheet = Sheet {
      if let subscription = holder.value.subscription, isFirst.value.isSet {
        isFirst.value.isSet = false
        subscription.request(.max(2))
      }
    }
    let source = ManualPublisher<Int, Never>()
    source.print(to: sheet).subscribe(holder.value)
    source.send(1)
    #expect(
      sheet.take() == ["receive subscription: (Manual)", "receive value: (1)", "request max: (2)"])
  }

  @Test func printsWhatComesBeforeTheSubscriptionAndIgnoresIt() {
    let sheet = Sheet()
    let rig = Rig(demand: Subscribers.Demand.none, subscribesAtOnce: false) { $0.print(to: sheet) }
    rig.source.send(1)
    rig.source.send(completion: .finished)
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("Print"), .requested(.none)])
    #expect(
      sheet.take() == [
        "receive value: (1)", "receive finished", "receive subscription: (Manual)", "request max: (0)",
      ])
  }

  @Test func withstandsReentrancy() {
    expectStreamWithstandsReentrancy(named: "Print") { $0.print(to: Sheet()) }
  }
}
