import Dispatch
import Glibc
import PortableCombine
import SluiceClient

/// A source that runs only while there is a subscriber, on any machine.
///
///     sluiced &
///     swift run Ticker                        # and, meanwhile: sluice sub ticks --from new
///
/// The topic is connected from its first subscriber to its last. The broker requests one tick at a time from the publisher, so no timer runs without
/// subscribers. The program subscribes to the first five ticks itself.
@main
enum Ticker {
  static func main() async {
    do {
      try await run(server: CommandLine.arguments.dropFirst().first ?? "127.0.0.1:7420")
    } catch {
      // An error thrown by main() would trap.
      print("Ticker: \(error)")
      exit(1)
    }
  }

  // Not in `main()`: closures there belong to the main actor, and these are called on the client's own thread.
  private static func run(server: String) async throws {
    let client = try await Client.connect(to: server)
    var settings = TopicSettings()
    settings.connect = .auto(1)
    try await client.createTopic("ticks", settings: settings)

    let clock = DispatchQueue(label: "clock")
    let ticks = (1...).publisher
      .flatMap(maxPublishers: .max(1)) { Just($0).delay(for: .milliseconds(200), scheduler: clock) }
      .handleEvents(
        receiveSubscription: { _ in print("a subscriber is there: the clock runs") },
        receiveCancel: { print("no subscriber is left: the clock stands") })
    let publication =
      ticks
      .map { Message("tick \($0)") }
      .publish(to: client.subject("ticks"), when: .connected)

    var heard = 0
    for try await record in client.topic("ticks", from: .new).values {
      print(record.string)
      heard += 1
      if heard == 5 { break }
    }
    print("Listen with: sluice sub ticks --from new. Press return to end.")
    _ = readLine()
    publication.cancel()
  }
}
