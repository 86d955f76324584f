import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

/// Readers of one topic share the bytes that are written for them. Each gets the same bytes as it would alone.
@Suite struct HTTPSharingTests {
  private let door: DoorWorld
  private let native: NativeClient

  init() throws {
    door = try DoorWorld([.http])
    native = try NativeClient(door)
  }

  private func reader(_ target: String, accept: String = "text/event-stream") -> ByteClient {
    let client = door.connect(1)
    client.send("GET /topics/\(target) HTTP/1.1\r\nHost: b\r\nAccept: \(accept)\r\n\r\n")
    door.settle()
    return client
  }

  /// The body of the response so far, without chunk sizes.
  private func body(_ client: ByteClient) -> String {
    guard let end = client.text.firstRange(of: "\r\n\r\n") else { return "" }
    var rest = Array(client.text[end.upperBound...].utf8)[...]
    var body: [UInt8] = []
    while let end = rest.firstIndex(of: 0x0A) {
      let size = Int(String(decoding: rest[..<end].dropLast(), as: UTF8.self), radix: 16) ?? 0
      rest = rest[(end + 1)...]
      body += rest.prefix(size)
      rest = rest.dropFirst(size + 2)
    }
    return String(decoding: body, as: UTF8.self)
  }

  /// The payloads of a body, without the letters after their numbers.
  private func numbers(_ client: ByteClient) -> [String] {
    body(client).split(separator: "\n").compactMap { line in
      line.firstRange(of: "\"payload\":\"").map { (mark: Range<String.Index>) -> String in
        String(line[mark.upperBound...].prefix { $0 != "x" && $0 != "\"" })
      }
    }
  }

  private func publish(_ numbers: Range<Int>, letters: Int, time: Duration = .milliseconds(200)) {
    let text = String(repeating: "x", count: letters)
    native.publish("t", numbers.map { "\($0)\(text)" }, from: UInt64(numbers.lowerBound), stream: 1)
    door.settle(time)
  }

  @Test func aReaderByHTTP10GetsTheSameWithoutChunks() throws {
    publish(0..<3, letters: 10)
    let other = reader("t?until=live")
    let clients = ["t?until=live", "t?count=5"].map { target in
      let client = door.connect(1)
      client.send("GET /topics/\(target) HTTP/1.0\r\nAccept: text/event-stream\r\n\r\n")
      door.settle()
      return client
    }
    #expect(clients.map(\.hasEnded) == [true, false])
    let contents = try clients.map { client in
      let end = try #require(client.text.firstRange(of: "\r\n\r\n"))
      #expect(client.text[..<end.lowerBound].hasSuffix("\r\nConnection: close"))
      #expect(!client.text[..<end.lowerBound].contains("Transfer-Encoding"))
      return String(client.text[end.upperBound...])
    }
    #expect(contents == [body(other), body(other)])
    publish(3..<5, letters: 10_000)
    #expect(clients[1].hasEnded && clients[1].text.hasSuffix("x\"}\n\n"))
  }

  @Test func eachReaderGetsItsRecordsInItsFormat() {
    publish(0..<3, letters: 10)
    let events = [reader("t"), reader("t"), reader("t?from=offset:2")]
    let lines = [reader("t", accept: "*/*"), reader("%3E", accept: "*/*")]
    let few = reader("t?count=5")
    let slow = reader("t")
    slow.isPaused = true
    var total = 3
    // Runs of many records, of few, and of one that is longer than a run.
    for (count, letters) in [(500, 300), (1, 10), (40, 10_000), (1, 100_000), (100, 0)] {
      let first = total
      total += count
      publish(first..<total, letters: letters)
    }
    slow.isPaused = false
    door.settle(.seconds(5))
    let all = (0..<total).map(String.init)
    #expect(numbers(events[0]) == all)
    #expect(body(events[1]) == body(events[0]))
    #expect(body(slow) == body(events[0]))
    #expect(numbers(events[2]) == Array(all.dropFirst(2)))
    #expect(body(events[0]).hasSuffix(body(events[2])))
    #expect(numbers(lines[0]) == all)
    #expect(body(lines[1]) == body(lines[0]))
    #expect(numbers(few) == Array(all.prefix(5)))
    #expect(few.text.hasSuffix("\r\n0\r\n\r\n"))
  }

  @Test func aTopicThatIsMadeAnewHasRecordsOfItsOwn() throws {
    // Other readers keep the bytes that were written before.
    let others = [reader("%3E"), reader("%3E")]
    native.publish("t", ["old"], stream: 1)
    door.settle()
    #expect(numbers(others[0]) == ["old"])
    native.send(TopicDelete(topic: "t"), stream: 3)
    door.settle()
    native.publish("t", ["new"], stream: 5)
    door.settle()
    #expect(numbers(reader("t?from=earliest")) == ["new"])
    #expect(numbers(others[0]) == ["old", "new"])
    #expect(numbers(others[1]) == ["old", "new"])
  }
}
