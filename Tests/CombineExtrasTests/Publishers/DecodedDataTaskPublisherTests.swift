import Foundation
import CombineExtras
import PortableCombine
import ReactiveTestSupport
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

@Suite struct DecodedDataTaskPublisherTests {
  struct Person: Decodable, Hashable { var name: String }

  typealias Sut = URLSession.DecodedDataTaskPublisher<Person, JSONDecoder>

  /// Records its events, on the session's queue.
  final class Recorder: Subscriber, Sendable {
    let log = EventLog<String>()
    let subscriptions = EventLog<UncheckedBox<any Subscription>>()

    var subscription: any Subscription { subscriptions.events[0].value }

    func receive(subscription: any Subscription) { subscriptions.append(UncheckedBox(subscription)) }

    func receive(_ input: Person) -> Subscribers.Demand {
      log.append(input.name)
      return .none
    }

    func receive(completion: Subscribers.Completion<DecodedDataTaskError>) {
      switch completion {
      case .finished:
        log.append("finished")
      case .failure(.loading):
        log.append("loading failed")
      case .failure(.decoding(let error, let data, let response)):
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        let text = String(decoding: data, as: UTF8.self)
        log.append("decoding \(error is DecodingError ? "failed" : "?") \(status) \(text)")
      }
    }
  }

  let session = URLSession.patient

  func serve() throws -> LocalServer {
    try LocalServer { path in
      switch path {
      case "/person": LocalServer.Answer(#"{"name": "Ada"}"#)
      case "/hangs": nil
      default: LocalServer.Answer(status: 404, "lost")
      }
    }
  }

  @Test func theExampleDoesWhatItSays() async throws {
    let server = try serve()
    let url = server.url("/person")
    let printed = EventLog<String>()
    let person: URLSession.DecodedDataTaskPublisher<Person, JSONDecoder> =
      URLSession.shared.decodedDataTaskPublisher(for: url, decoder: JSONDecoder())
    let subscription = person.sink { _ in
      printed.append("end")
    } receiveValue: {
      printed.append($0.name)
    }
    #expect(await printed.wait(count: 2))
    #expect(printed.events == ["Ada", "end"])
    withExtendedLifetime(subscription) {}
  }

  @Test func nothingIsSentBeforeDemandAndEachSubscriptionSendsAnew() async throws {
    let server = try serve()
    let publisher = session.decodedDataTaskPublisher(
      for: URLRequest(url: server.url("/person")), as: Person.self, decoder: JSONDecoder())
    let idle = Recorder()
    publisher.subscribe(idle)
    for _ in 0..<2 {
      let recorder = Recorder()
      publisher.subscribe(recorder)
      recorder.subscription.request(.max(1))
      #expect(await recorder.log.wait(count: 2))
      #expect(recorder.log.events == ["Ada", "finished"])
    }
    #expect(idle.log.events == [])
    #expect(server.log.events == [.request(path: "/person"), .request(path: "/person")])
  }

  @Test func whatCannotBeDecodedFailsWithTheResponse() async throws {
    let server = try serve()
    let publisher: Sut = session.decodedDataTaskPublisher(for: server.url("/x"), decoder: JSONDecoder())
    let recorder = Recorder()
    publisher.subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await recorder.log.wait(count: 1))
    #expect(recorder.log.events == ["decoding failed 404 lost"])
  }

  @Test func whatCannotBeLoadedFails() async {
    let recorder = Recorder()
    let publisher: Sut = session.decodedDataTaskPublisher(
      for: URL(string: "http://127.0.0.1:1/")!, decoder: JSONDecoder())
    publisher.subscribe(recorder)
    recorder.subscription.request(.unlimited)
    #expect(await recorder.log.wait(count: 1))
    #expect(recorder.log.events == ["loading failed"])
  }

  @Test func cancellingCancelsTheTaskAndReleasesTheSubscriber() async throws {
    let server = try serve()
    weak var weakRecorder: Recorder?
    let kept: any Subscription
    do {
      let recorder = Recorder()
      weakRecorder = recorder
      let publisher: Sut = session.decodedDataTaskPublisher(
        for: server.url("/hangs"), decoder: JSONDecoder())
      publisher.subscribe(recorder)
      recorder.subscription.request(.max(1))
      #expect(await server.log.wait(count: 1))
      recorder.subscription.cancel()
      #expect(await server.log.wait { $0.contains(.hangUp(path: "/hangs")) })
      #expect(recorder.log.events == [])
      kept = recorder.subscription
    }
    #expect(weakRecorder == nil)
    withExtendedLifetime(kept) {}
  }
}
