import Foundation
import ReactiveCore
import ReactiveFoundation
import ReactiveTestSupport
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite struct DataTaskPublisherTests {
  /// Records its events, on the session's queue.
  final class Recorder: Subscriber, Sendable {
    typealias Input = (data: Data, response: URLResponse)
    typealias Failure = URLError

    let log = EventLog<String>()
    let subscriptions = EventLog<UncheckedBox<any Subscription>>()

    var subscription: any Subscription { subscriptions.events[0].value }

    func receive(subscription: any Subscription) {
      log.append(String(describing: subscription))
      subscriptions.append(UncheckedBox(subscription))
    }

    func receive(_ input: Input) -> Subscribers.Demand {
      let status = (input.response as? HTTPURLResponse)?.statusCode ?? 0
      log.append("\(status) \(String(decoding: input.data, as: UTF8.self))")
      return .none
    }

    func receive(completion: Subscribers.Completion<URLError>) {
      switch completion {
      case .finished: log.append("finished")
      case .failure(let error): log.append("failed \(error.code == .cancelled ? "cancelled" : "otherwise")")
      }
    }
  }

  let session = URLSession.patient

  @Test func nothingIsSentBeforeDemandAndAllSubscriptionsSendAnew() async throws {
    let server = try LocalServer { LocalServer.Answer("at \($0)") }
    let publisher = session.dataTaskPublisher(for: server.url("/a"))
    let idle = Recorder()
    publisher.subscribe(idle)
    let recorders = [Recorder(), Recorder()]
    for recorder in recorders {
      publisher.subscribe(recorder)
      recorder.subscription.request(.max(1))
      recorder.subscription.request(.max(1))
    }
    for recorder in recorders {
      #expect(await recorder.log.wait(count: 3))
      #expect(recorder.log.events == ["DataTaskPublisher", "200 at /a", "finished"])
    }
    #expect(idle.log.events == ["DataTaskPublisher"])
    #expect(server.log.events == [.request(path: "/a"), .request(path: "/a")])
  }

  @Test func anErrorStatusIsAValue() async throws {
    let server = try LocalServer { _ in LocalServer.Answer(status: 404, "none") }
    let recorder = Recorder()
    session.dataTaskPublisher(for: URLRequest(url: server.url("/x"))).subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await recorder.log.wait(count: 3))
    #expect(recorder.log.events == ["DataTaskPublisher", "404 none", "finished"])
  }

  @Test func cancellingCancelsTheTaskAndIsSilent() async throws {
    let server = try LocalServer { $0 == "/hangs" ? nil : LocalServer.Answer("later") }
    let recorder = Recorder()
    session.dataTaskPublisher(for: server.url("/hangs")).subscribe(recorder)
    recorder.subscription.request(.max(1))
    #expect(await server.log.wait(count: 1))
    recorder.subscription.cancel()
    recorder.subscription.cancel()
    recorder.subscription.request(.max(1))
    #expect(await server.log.wait { $0.contains(.hangUp(path: "/hangs")) })
    // The session's delegate queue is serial: all calls of the first task come before those of the second.
    let other = Recorder()
    session.dataTaskPublisher(for: server.url("/b")).subscribe(other)
    other.subscription.request(.max(1))
    #expect(await other.log.wait(count: 3))
    #expect(recorder.log.events == ["DataTaskPublisher"])
  }

  @Test func aRefusedConnectionIsAFailure() async {
    let url = URL(string: "http://127.0.0.1:1/")!
    let recorder = Recorder()
    session.dataTaskPublisher(for: url).subscribe(recorder)
    recorder.subscription.request(.max(1))
    #expect(await recorder.log.wait(count: 2))
    #expect(recorder.log.events == ["DataTaskPublisher", "failed otherwise"])
  }

  @Test func subscribersAreReleasedAtTheEndAndOnCancellation() async throws {
    let server = try LocalServer { _ in LocalServer.Answer("") }
    weak var finished: Recorder?
    weak var cancelled: Recorder?
    var kept: [any Subscription] = []
    do {
      let recorder = Recorder()
      finished = recorder
      session.dataTaskPublisher(for: server.url("/")).subscribe(recorder)
      recorder.subscription.request(.max(1))
      #expect(await recorder.log.wait(count: 3))
      kept.append(recorder.subscription)
      let other = Recorder()
      cancelled = other
      session.dataTaskPublisher(for: server.url("/")).subscribe(other)
      other.subscription.cancel()
      kept.append(other.subscription)
    }
    #expect(cancelled == nil)
    // The delegate queue may not have returned from the delivering call yet.
    let last = Recorder()
    session.dataTaskPublisher(for: server.url("/")).subscribe(last)
    last.subscription.request(.max(1))
    #expect(await last.log.wait(count: 3))
    #expect(finished == nil)
    withExtendedLifetime(kept) {}
  }

  @Test func stopsTheProgramOnARequestForNothing() async {
    await #expect(processExitsWith: .failure) {
      let recorder = Recorder()
      URLSession.shared.dataTaskPublisher(for: URL(string: "http://127.0.0.1/")!).subscribe(recorder)
      recorder.subscription.request(.none)
    }
  }
}
