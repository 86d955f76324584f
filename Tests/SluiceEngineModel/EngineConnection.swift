import Glibc
import SluiceIO
import SluiceNATS

/// One client of a server of the model: the protocol of NATS, server's side.
final class EngineConnection: ByteStreamHandler {
  private struct Subscription {
    var subject: String
    var queue: String?
    var remaining: Int?
  }

  private let stream: any ByteStream
  private unowned let server: EngineServerModel
  private var input: [UInt8] = []
  private var output: [UInt8] = []
  private var subscriptions: [UInt64: Subscription] = [:]
  private(set) var isOver = false

  init(_ stream: any ByteStream, of server: EngineServerModel) {
    self.stream = stream
    self.server = server
  }

  func start() {
    stream.start(self)
    write(Array(server.info.utf8))
  }

  /// Ends it without another word.
  func reset() {
    guard !isOver else { return }
    isOver = true
    stream.abort()
    server.ended(self)
  }

  // MARK: Output

  func hasInterest(in subject: String) -> Bool {
    !isOver && subscriptions.values.contains { NATSSubject.matches(subject, $0.subject) }
  }

  /// Sends a message to the subscriptions that `subject` matches.
  func deliver(_ message: ModelMessage, to subject: String) {
    for number in subscriptions.keys.sorted() {
      guard let subscription = subscriptions[number], NATSSubject.matches(subject, subscription.subject)
      else { continue }
      send(message, to: number)
      guard let remaining = subscription.remaining else { continue }
      subscriptions[number]?.remaining = remaining - 1
      if remaining <= 1 { subscriptions[number] = nil }
    }
  }

  private func send(_ message: ModelMessage, to number: UInt64) {
    let block = message.block
    let middle = "\(message.subject) \(number) \(message.reply.isEmpty ? "" : message.reply + " ")"
    let sizes =
      block.isEmpty
      ? "\(message.payload.count)" : "\(block.count) \(block.count + message.payload.count)"
    write(
      Array("\(block.isEmpty ? "MSG" : "HMSG") \(middle)\(sizes)\r\n".utf8) + block + message.payload
        + [0x0D, 0x0A])
  }

  private func write(_ bytes: [UInt8]) {
    output += bytes
    flush()
  }

  private func flush() {
    guard !isOver, !output.isEmpty else { return }
    let result = output.withUnsafeBytes { bytes -> WriteResult in
      var vector = iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
      return withUnsafePointer(to: &vector) { stream.write(UnsafeBufferPointer(start: $0, count: 1)) }
    }
    switch result {
    case .failed: close()
    case .wrote(let count): output.removeFirst(count)
    }
  }

  private func close() {
    guard !isOver else { return }
    isOver = true
    stream.close()
    server.ended(self)
  }

  // MARK: Input

  func streamReadable() {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    switch buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
    case .bytes(let count):
      input += buffer[..<count]
      var position = 0
      while !isOver, let end = processOne(from: position) { position = end }
      if !isOver { input.removeFirst(position) }
    case .wouldBlock: break
    case .end, .failed: close()
    }
  }

  func streamWritable() { flush() }

  func streamFailed(_ error: IOError) {
    guard !isOver else { return }
    isOver = true
    server.ended(self)
  }

  /// Returns the position behind the operation at `start`; nil when it isn't complete.
  private func processOne(from start: Int) -> Int? {
    guard let end = input[start...].firstIndex(of: 0x0A) else { return nil }
    let line = String(decoding: input[start..<max(start, end - 1)], as: UTF8.self)
    let words = line.split(separator: " ").map(String.init)
    let first = end + 1
    switch words.first {
    case "PING": write(Array("PONG\r\n".utf8))
    case "CONNECT", "PONG": break
    case "SUB" where words.count >= 3:
      subscriptions[UInt64(words.last!)!] = Subscription(
        subject: words[1], queue: words.count > 3 ? words[2] : nil)
    case "UNSUB" where words.count >= 2:
      let number = UInt64(words[1])!
      if words.count > 2 {
        subscriptions[number]?.remaining = Int(words[2])
      } else {
        subscriptions[number] = nil
      }
    case "PUB", "HPUB":
      let hasHeaders = words[0] == "HPUB"
      let total = Int(words.last!)!
      guard input.count >= first + total + 2 else { return nil }
      let headerCount = hasHeaders ? Int(words[words.count - 2])! : 0
      let names = words.dropFirst().dropLast(hasHeaders ? 2 : 1)
      var message = ModelMessage(names.first!, reply: names.count > 1 ? names.last! : "")
      message.setHeaders(Array(input[first..<first + headerCount]))
      message.payload = Array(input[first + headerCount..<first + total])
      server.published(message, by: self)
      return first + total + 2
    default:
      write(Array("-ERR 'Unknown Protocol Operation'\r\n".utf8))
      close()
    }
    return first
  }
}
