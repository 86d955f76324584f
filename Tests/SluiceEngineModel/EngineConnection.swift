import Glibc
import SluiceIO
import SluiceNATS

/// One client of a server of the model: the server's side of the NATS protocol.
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
  /// The numbers of the subscriptions, ascending: those without wildcards by subject, and the others.
  private var exact: [String: [UInt64]] = [:]
  private var wild: [UInt64] = []
  private(set) var isOver = false

  init(_ stream: any ByteStream, of server: EngineServerModel) {
    self.stream = stream
    self.server = server
  }

  func start() {
    stream.start(self)
    write(Array(server.info.utf8))
  }

  /// Ends it without further output.
  func reset() {
    guard !isOver else { return }
    isOver = true
    stream.abort()
    server.ended(self)
  }

  // MARK: Output

  func hasInterest(in subject: String) -> Bool {
    guard !isOver else { return false }
    if exact[subject] != nil { return true }
    for number in wild where matches(subject, number) { return true }
    return false
  }

  /// Sends a message to the subscriptions that match `subject`, in the order of their numbers.
  func deliver(_ message: ModelMessage, to subject: String) {
    var numbers = exact[subject] ?? []
    let others = wild.filter { matches(subject, $0) }
    if !others.isEmpty { numbers = (numbers + others).sorted() }
    for number in numbers {
      guard let subscription = subscriptions[number] else { continue }
      send(message, to: number)
      guard let remaining = subscription.remaining else { continue }
      subscriptions[number]?.remaining = remaining - 1
      if remaining <= 1 { unsubscribe(number) }
    }
  }

  private func matches(_ subject: String, _ number: UInt64) -> Bool {
    subscriptions[number].map { NATSSubject.matches(subject, $0.subject) } ?? false
  }

  private func subscribe(_ number: UInt64, _ subscription: Subscription) {
    unsubscribe(number)
    subscriptions[number] = subscription
    if subscription.subject.utf8.contains(where: { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: ">") }) {
      wild = (wild + [number]).sorted()
    } else {
      exact[subscription.subject] = ((exact[subscription.subject] ?? []) + [number]).sorted()
    }
  }

  private func unsubscribe(_ number: UInt64) {
    guard let subscription = subscriptions.removeValue(forKey: number) else { return }
    wild.removeAll { $0 == number }
    guard var numbers = exact[subscription.subject] else { return }
    numbers.removeAll { $0 == number }
    exact[subscription.subject] = numbers.isEmpty ? nil : numbers
  }

  private func send(_ message: ModelMessage, to number: UInt64) {
    let block = message.block
    let middle = "\(message.subject) \(number) \(message.reply.isEmpty ? "" : message.reply + " ")"
    let sizes =
      block.isEmpty
      ? "\(message.payload.count)" : "\(block.count) \(block.count + message.payload.count)"
    output += Array("\(block.isEmpty ? "MSG" : "HMSG") \(middle)\(sizes)\r\n".utf8)
    output += block
    output += message.payload
    write([0x0D, 0x0A])
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
    case .wrote(output.count): output.removeAll(keepingCapacity: true)
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
    let result = stream.read(into: server.buffer)
    switch result {
    case .bytes(let count):
      input += UnsafeRawBufferPointer(rebasing: server.buffer[..<count])
      var position = 0
      while !isOver, let end = processOne(from: position) { position = end }
      if isOver { break }
      if position == input.count {
        input.removeAll(keepingCapacity: true)
      } else {
        input.removeFirst(position)
      }
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

  /// Returns the position after the operation at `start`; nil if that is incomplete.
  private func processOne(from start: Int) -> Int? {
    guard let (words, first) = input.withUnsafeBytes({ Self.line($0, from: start) }) else { return nil }
    switch words.first {
    case "PING": write(Array("PONG\r\n".utf8))
    case "CONNECT", "PONG": break
    case "SUB" where words.count >= 3:
      subscribe(
        UInt64(words.last!)!, Subscription(subject: words[1], queue: words.count > 3 ? words[2] : nil))
    case "UNSUB" where words.count >= 2:
      let number = UInt64(words[1])!
      if words.count > 2 {
        subscriptions[number]?.remaining = Int(words[2])
      } else {
        unsubscribe(number)
      }
    case "PUB", "HPUB":
      let hasHeaders = words[0] == "HPUB"
      let total = Int(words.last!)!
      guard input.count >= first + total + 2 else { return nil }
      let headerCount = hasHeaders ? Int(words[words.count - 2])! : 0
      let names = words.dropFirst().dropLast(hasHeaders ? 2 : 1)
      var message = ModelMessage(names.first!, reply: names.count > 1 ? names.last! : "")
      input.withUnsafeBytes { bytes in
        let body = bytes[first..<first + total]
        message.setHeaders(UnsafeRawBufferPointer(rebasing: body.prefix(headerCount)))
        message.payload = [UInt8](body.dropFirst(headerCount))
      }
      server.published(message, by: self)
      return first + total + 2
    default:
      write(Array("-ERR 'Unknown Protocol Operation'\r\n".utf8))
      close()
    }
    return first
  }

  /// The words of the line at `start`, and the position after it; nil if it is incomplete.
  private static func line(_ bytes: UnsafeRawBufferPointer, from start: Int) -> (words: [String], end: Int)? {
    guard let end = bytes.position(of: 0x0A, from: start) else { return nil }
    var words: [String] = []
    var position = start
    while position < end {
      let blank = min(bytes.position(of: 0x20, from: position) ?? end, end)
      let word = bytes.text(position, blank)
      if !word.isEmpty { words.append(word) }
      position = blank + 1
    }
    return (words, end + 1)
  }
}
