import Glibc
import PortableCombine
import SluiceClient
import Synchronization

/// Makes back-pressure visible: how many records the broker requests from a source while a subscriber is slow.
///
///     sluiced &
///     swift run BackPressure                  # and, meanwhile: sluice topic show pressure, or sluice top
///
/// The source could publish four thousand numbers at once. The topic is lossless with a buffer of 50 records, and the subscriber requests one at a time.
/// Therefore the source gets the subscriber's demand plus the buffer. After a while the subscriber speeds up, and so does the source.
@main
enum BackPressure {
  private static let numbers = 4000

  static func main() async {
    do {
      try await run(server: CommandLine.arguments.dropFirst().first ?? "127.0.0.1:7420")
    } catch {
      // An error thrown by main() would trap.
      print("BackPressure: \(error)")
      exit(1)
    }
  }

  // Not in `main()`: closures there belong to the main actor, and these are called on the client's own thread.
  private static func run(server: String) async throws {
    let client = try await Client.connect(to: server)
    var settings = TopicSettings()
    settings.flow = .lossless
    settings.bufferRecords = 50
    settings.withoutSubscribers = .hold
    // Removes the topic of an earlier run.
    try? await client.deleteTopic("pressure")
    try await client.createTopic("pressure", settings: settings)

    let given = Atomic(0)
    let subject = client.subject("pressure")
    let publication = (1...numbers).publisher
      .handleEvents(receiveOutput: { given.store($0, ordering: .relaxed) })
      .map { Message("\($0)") }
      .setFailureType(to: ClientError.self)
      .subscribe(subject)

    print("given by the source ▒, taken by the subscriber ▓, a sign for 50")
    var taken = 0
    for try await _ in client.topic("pressure").values {
      taken += 1
      if taken % 50 == 0 { show(given: given.load(ordering: .relaxed), taken: taken) }
      // Slow at first, then as fast as possible.
      if taken < 500 { try await Task.sleep(for: .milliseconds(5)) }
    }
    publication.cancel()
    print("the source has ended, and so has the topic: \(taken) records")
  }

  private static func show(given: Int, taken: Int) {
    let bar =
      String(repeating: "▓", count: taken / 50) + String(repeating: "▒", count: max(given - taken, 0) / 50)
    print("\(bar) \(taken) taken, \(given - taken) ahead")
  }
}
