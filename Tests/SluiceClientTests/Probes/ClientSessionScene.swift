import SluiceSession
import SluiceWire
import TestSupport

@testable import SluiceClient

/// A client's session, with subscriptions, publications and requests that open and close, and a broker that sends arbitrary frames.
struct ClientSessionScene {
  private var session: ClientSession
  private var isOpen = false
  /// The demand and the received records of each subscription; the grants and the published records of each publication.
  private var asked: [UInt32: UInt64] = [:]
  private var received: [UInt32: UInt64] = [:]
  private var granted: [UInt32: UInt64] = [:]
  private var published: [UInt32: UInt64] = [:]
  private var committing: Set<UInt32> = []
  private var now: UInt64 = 0

  /// Reads a byte that selects the event, then its arguments, until the connection ends.
  static func play(_ input: ProbeInput) throws {
    var frames = ProbeFrames(input)
    let first = frames.input.byte()
    let features = first & 2 != 0 ? Feature.redirects : 0
    var scene = ClientSessionScene(session: ClientSession(features: features))
    if first != 0 {
      let welcome = Welcome(
        features: features,
        maximumFrame: 1 << 20, maximumRecord: 1000, maximumStreams: 6, keepalive: frames.input.shortNumber(),
        broker: 1, software: "")
      guard try scene.receive(welcome.encoded(stream: 0)) else { throw ProbeViolation("WELCOME is refused") }
    }
    while !frames.input.isEmpty {
      switch frames.input.byte() {
      case 0xF0...0xFF: scene.open(frames.input.byte(), frames.input.number())
      case 0xE8...0xEF: scene.cancel(frames.stream())
      case 0xE0...0xE7:
        try scene.publish(frames.stream(), frames.input.shortNumber(), complete: frames.input.bool())
      case 0xD8...0xDF: scene.grant(frames.stream(), frames.input.number())
      case 0xD0...0xD7: scene.wait(frames.input.number())
      default: guard try scene.receive(frames.fromBroker()) else { return }
      }
    }
  }

  // MARK: What the client does

  private mutating func open(_ kind: UInt8, _ number: UInt64) {
    guard isOpen else { return }
    switch kind % 6 {
    case 0: subscribe(session.openSubscription(granted: number), number)
    case 1: subscribe(session.openSubscription(granted: number, isPattern: true), number)
    case 2: subscribe(session.openSubscription(granted: number, isShared: true), number)
    case 3: subscribe(session.openSubscription(granted: number, commits: true), number)
    case 4:
      let first = min(number, PublishOpen.largestFirstSequence)
      guard let stream = session.openPublication(from: first, isSource: number & 1 != 0) else { return }
      (granted[stream], published[stream]) = (0, first)
    default: _ = session.openRequest()
    }
  }

  private mutating func subscribe(_ stream: UInt32?, _ number: UInt64) {
    guard let stream else { return }
    (asked[stream], received[stream]) = (number, 0)
  }

  private mutating func cancel(_ stream: UInt32) {
    _ = session.cancel(stream)
    if committing.remove(stream) != nil { session.releaseCommitting(stream) }
  }

  private mutating func publish(_ stream: UInt32, _ count: UInt32, complete: Bool) throws {
    if complete {
      _ = session.completePublication(stream)
      return
    }
    let available = session.available(stream)
    guard available > 0, count > 0 else { return }
    let count = UInt32(clamping: min(UInt64(count), available))
    let first = session.publish(stream, count: count, bytes: Int(clamping: session.availableBytes(stream)))
    guard first == published[stream] else { throw ProbeViolation("PUBLISH goes on at \(first)") }
    // The count wraps around; no client publishes that many records.
    published[stream] = first &+ UInt64(count)
    guard granted[stream] == .max || published[stream] ?? 0 <= granted[stream] ?? 0 else {
      throw ProbeViolation("\(published[stream] ?? 0) records are published, beyond \(granted[stream] ?? 0)")
    }
  }

  private mutating func grant(_ stream: UInt32, _ through: UInt64) {
    if session.grant(stream, through: through) { asked[stream] = max(asked[stream] ?? 0, through) }
  }

  private mutating func wait(_ nanoseconds: UInt64) {
    now &+= min(nanoseconds, .max - now)
    _ = session.watch(at: now)
  }

  // MARK: What the broker does

  /// Returns false if the connection has ended.
  private mutating func receive(_ frame: [UInt8]) throws -> Bool {
    try withExactMemory(frame) { frame in
      let header = FrameHeader(at: frame.baseAddress!)
      session.heard(at: now)
      let action: ClientAction
      do {
        action = try session.receive(
          header, UnsafeRawBufferPointer(rebasing: frame[FrameHeader.size...]), at: now)
      } catch is WireError {
        return false
      }
      return try take(action)
    }
  }

  private mutating func take(_ action: ClientAction) throws -> Bool {
    switch action {
    case .opened: isOpen = true
    case .goAway: isOpen = false
    case .failed: return false
    case .deliver(let stream, let header, let batch):
      received[stream, default: 0] += UInt64(header.count)
      guard received[stream] ?? 0 <= asked[stream] ?? 0 else {
        throw ProbeViolation(
          "\(received[stream] ?? 0) records are taken, where \(asked[stream] ?? 0) were asked for")
      }
      _ = try? DeliveredBatch.check(batch, count: header.count)
    case .publicationOpened(let stream, let frame):
      published[stream] = frame.nextSequence
      note(stream)
    case .granted(let stream): note(stream)
    case .acknowledged(let stream, let ack):
      guard ack.through <= published[stream] ?? 0 else {
        throw ProbeViolation("\(ack.through) records are acknowledged of \(published[stream] ?? 0)")
      }
    case .ended(let stream, _): committing.insert(stream)
    default: break
    }
    return true
  }

  private mutating func note(_ stream: UInt32) {
    let available = session.available(stream)
    let sum = (published[stream] ?? 0).addingReportingOverflow(available)
    granted[stream] = max(granted[stream] ?? 0, available == .max || sum.overflow ? .max : sum.partialValue)
  }
}
