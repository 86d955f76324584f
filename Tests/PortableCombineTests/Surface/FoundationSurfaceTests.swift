import Foundation
import PortableCombine
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The publishers of Foundation's types.
@Suite struct FoundationSurfaceTests {
  @Test func timers() {
    let timer = Timer.publish(every: 60, on: .main, in: .common)
    expectType(of: timer, is: Timer.TimerPublisher.self)
    let _: any ConnectablePublisher<Date, Never> = timer
    expectType(of: timer.autoconnect(), is: Publishers.Autoconnect<Timer.TimerPublisher>.self)
    let all = Timer.publish(every: 60, tolerance: 1, on: .current, in: .default, options: nil)
    #expect(all.interval == 60 && all.tolerance == 1 && all.mode == .default && all.options == nil)
    let made = Timer.TimerPublisher(interval: 60, runLoop: .main, mode: .default)
    made.connect().cancel()
  }

  @Test func notifications() {
    let center = NotificationCenter()
    let name = Notification.Name("surface")
    let publisher = center.publisher(for: name)
    expectType(of: publisher, is: NotificationCenter.Publisher.self)
    let _: any Publisher<Notification, Never> = publisher
    #expect(publisher == NotificationCenter.Publisher(center: center, name: name))
    #expect(center.publisher(for: name, object: center).object === center)
    var names: [Notification.Name] = []
    let subscription = publisher.map(\.name).sink { names.append($0) }
    center.post(name: name, object: nil)
    #expect(names == [name])
    subscription.cancel()
  }

  @Test func dataTasks() throws {
    let url = try #require(URL(string: "http://localhost/"))
    let publisher = URLSession.shared.dataTaskPublisher(for: url)
    expectType(of: publisher, is: URLSession.DataTaskPublisher.self)
    let _: any Publisher<(data: Data, response: URLResponse), URLError> = publisher
    #expect(publisher.request.url == url && publisher.session === URLSession.shared)
    _ = URLSession.shared.dataTaskPublisher(for: URLRequest(url: url)).map(\.data)
    _ = URLSession.DataTaskPublisher(request: URLRequest(url: url), session: .shared)
  }

  /// The examples of the documentation.
  @Test func theExamples() {
    let clock = Timer.publish(every: 1, on: .main, in: .common).autoconnect().sink { print($0) }
    clock.cancel()
    let changes = NotificationCenter.default.publisher(for: .init("saved"))
    let subscription = changes.sink { print($0.name) }
    subscription.cancel()
  }
}
