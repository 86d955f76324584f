import ReactiveCore
import ReactiveTestSupport
import Testing

@Suite struct HandleEventsTests {
  @Test func callsItsFunctionsBeforeItPassesEachEventOn() {
    var log: [String] = []
    let rig = Rig(demand: .max(1), perValue: .max(2)) { source in
      source.handleEvents(
        receiveSubscription: { log.append("subscription \($0)") },
        receiveOutput: { log.append("output \($0)") },
        receiveCompletion: { log.append("completion \($0)") },
        receiveCancel: { log.append("cancel") },
        receiveRequest: { log.append("request \($0)") })
    }
    rig.subscriber.onValue = { log.append("downstream \($0)") }
    #expect(rig.take() == [.subscription("HandleEvents"), .requested(.max(1))])
    #expect(log == ["subscription Manual", "request max(1)"])
    log = []
    #expect(rig.source.send(7) == .max(2))
    #expect(log == ["output 7", "downstream 7", "request max(2)"])
    log = []
    rig.source.send(completion: .finished)
    rig.subscription.cancel()
    rig.source.send(8)
    #expect(log == ["completion finished"])
    #expect(rig.take() == [.value(7), .finished])
  }

  @Test func cancelIsReportedOnceAndPassedOn() {
    var count = 0
    let rig = Rig { $0.handleEvents(receiveCancel: { count += 1 }) }
    rig.subscription.cancel()
    rig.subscription.cancel()
    rig.source.send(1)
    rig.source.send(completion: .finished)
    #expect(count == 1)
    #expect(rig.take() == [.subscription("HandleEvents"), .requested(.unlimited), .cancelled])
  }

  @Test func announcesItselfWhenUpstreamHasSubscribed() {
    var count = 0
    let rig = Rig(demand: .max(2), subscribesAtOnce: false) { source in
      source.handleEvents(receiveSubscription: { _ in count += 1 })
    }
    #expect(rig.take() == [])
    rig.source.sendSubscription()
    #expect(rig.take() == [.subscription("HandleEvents"), .requested(.max(2))])
    rig.source.sendSubscription()
    #expect(rig.take() == [.cancelled])
    #expect(count == 2)
  }

  @Test func isOrderly() {
    expectOrderlyStream(named: "HandleEvents") { $0.handleEvents() }
    expectStreamWithstandsReentrancy(named: "HandleEvents") { $0.handleEvents() }
  }

  @Test func reportsNoMoreRequestsAfterTheEnd() {
    var log: [String] = []
    let rig = Rig(demand: .max(1)) { source in
      source.handleEvents(receiveCancel: { log.append("cancel") }, receiveRequest: { log.append("\($0)") })
    }
    rig.subscription.cancel()
    rig.subscription.request(.max(2))
    #expect(log == ["max(1)", "cancel"])
  }

  @Test func releasesEverything() {
    expectEverythingReleased { $0.handleEvents() }
  }
}
