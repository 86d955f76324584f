import Glibc
import PortableCombine
import SluiceClient

/// A chat room: the last lines are replayed to each client that joins.
///
///     sluiced &
///     swift run Chat kitchen ada              # in one window
///     swift run Chat kitchen bob              # in another
///
/// Every line is a record whose key is the speaker's name. After a lost connection the client reconnects, and receives the lines of the meantime, each once.
/// The end of the input leaves the room.
@main
enum Chat {
  static func main() async {
    let arguments = CommandLine.arguments.dropFirst()
    guard let room = arguments.first, let name = arguments.dropFirst().first else {
      print("usage: Chat ROOM NAME [SERVER]")
      return
    }
    do {
      try await talk(in: room, as: name, server: arguments.dropFirst(2).first ?? "127.0.0.1:7420")
    } catch {
      // An error thrown by main() would trap.
      print("Chat: \(error)")
      exit(1)
    }
  }

  // Not in `main()`: closures there belong to the main actor, and these are called on the client's own thread.
  private static func talk(in room: String, as name: String, server: String) async throws {
    let client = try await Client.connect(to: server)
    let topic = "chat.\(room)"
    let heard = client.topic(topic, from: .last(20)).sink { completion in
      if case .failure(let error) = completion { print("the room is closed: \(error.message)") }
    } receiveValue: { record in
      let speaker = record.key.map { String(decoding: $0, as: UTF8.self) } ?? "?"
      print("\(speaker): \(record.string)")
    }
    let said = client.subject(topic)
    // Waits until each line is acknowledged: lines that weren't sent are lost when the program ends.
    while let line = readLine() {
      try await said.publish(Message(line, key: name))
    }
    // After the answer, all lines that the broker has sent to others were received here, too.
    _ = try await client.ping()
    heard.cancel()
  }
}
