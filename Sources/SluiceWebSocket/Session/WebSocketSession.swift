/// The requests of a session, besides the bytes that it appends to the output. Memory is valid during the call only.
@safe
package enum WebSocketAction {
  /// Hand on a part of a message: see ``WebSocketEvent/part(isText:_:isFirst:isLast:isCompressed:)``.
  case part(isText: Bool, UnsafeRawBufferPointer, isFirst: Bool, isLast: Bool, isCompressed: Bool)
  /// Send what is in the output, then close the transport. Nothing follows.
  case end(WebSocketEnding)
}

/// How a connection ended: the code and the reason of the side that closed it first.
package struct WebSocketEnding: Hashable, Sendable {
  package var code: WebSocketCloseCode
  package var reason: String
  /// Whether this side has closed it because the peer had broken the protocol's rules.
  package var isViolation: Bool

  package init(_ code: WebSocketCloseCode, _ reason: String, isViolation: Bool = false) {
    self.code = code
    self.reason = reason
    self.isViolation = isViolation
  }
}

/// One end of an open WebSocket connection: bytes and times in, actions out.
///
/// A value without I/O and without a clock: it answers pings, plays the close handshake, and notices a peer that is silent. All times are
/// nanoseconds of any clock that doesn't go back.
package struct WebSocketSession: Sendable {
  package struct Rules: Hashable, Sendable {
    package var limits: WebSocketDecoder.Limits
    /// Whether text messages are accepted. If not, a text message is answered with ``WebSocketCloseCode/unsupportedData``.
    package var takesText: Bool
    /// Whether permessage-deflate was agreed on, so that messages may be compressed.
    package var compression: Bool
    /// A peer that has sent nothing for so long is sent a ping; 0 for none.
    package var pingAfter: UInt64
    /// A peer that doesn't answer a ping, or a Close frame, for so long is dropped.
    package var patience: UInt64

    package init(
      limits: WebSocketDecoder.Limits, takesText: Bool, compression: Bool = false,
      pingAfter: UInt64 = 20_000_000_000, patience: UInt64 = 10_000_000_000
    ) {
      self.limits = limits
      self.takesText = takesText
      self.compression = compression
      self.pingAfter = pingAfter
      self.patience = patience
    }
  }

  private enum Phase: Hashable {
    case open
    /// A Close frame was sent; the peer's is awaited.
    case closing(WebSocketEnding, since: UInt64)
    case ended
  }

  private let side: WebSocketSide
  private let rules: Rules
  private var decoder: WebSocketDecoder
  private var phase = Phase.open
  private var lastReceived: UInt64
  private var pingSent: UInt64?

  package init(_ side: WebSocketSide, _ rules: Rules, now: UInt64) {
    self.side = side
    self.rules = rules
    decoder = WebSocketDecoder(side, limits: rules.limits, compression: rules.compression)
    lastReceived = now
  }

  /// Whether messages may be sent.
  package var isOpen: Bool { phase == .open }

  /// Bytes of memory that are held for frames that are cut in two.
  package var heldBytes: Int { decoder.heldBytes }

  // MARK: Events

  /// Bytes have come, which are changed in place.
  package mutating func receive(
    _ chunk: UnsafeMutableRawBufferPointer, now: UInt64, output: inout [UInt8],
    _ body: (WebSocketAction) -> Void
  ) {
    _ = unsafe receive(partOf: chunk, now: now, output: &output) { action in
      body(action)
      return true
    }
  }

  /// The same until `body` returns false: it wants no more now. An error of it about a part is a violation of the protocol that ends the session.
  ///
  /// - Returns: how many bytes were taken. The rest is to be given again.
  package mutating func receive(
    partOf chunk: UnsafeMutableRawBufferPointer, now: UInt64, output: inout [UInt8],
    while body: (WebSocketAction) throws(WebSocketError) -> Bool
  ) -> Int {
    guard phase != .ended else { return chunk.count }
    lastReceived = now
    pingSent = nil
    // Taken out, so that the session can be changed while the decoder runs.
    var decoder = self.decoder
    defer { self.decoder = decoder }
    do {
      return try unsafe decoder.decode(partOf: chunk) { event throws(WebSocketError) in
        try take(event, output: &output, body)
      }
    } catch {
      fail(error, output: &output) { _ = try? body($0) }
      return chunk.count
    }
  }

  /// The application closes the connection. Parts that come after this are dropped.
  package mutating func close(
    _ code: WebSocketCloseCode, reason: String = "", now: UInt64, output: inout [UInt8]
  ) {
    guard phase == .open else { return }
    WebSocketEncoder.appendClose(code, reason: reason, mask: mask, to: &output)
    phase = .closing(WebSocketEnding(code, reason), since: now)
  }

  /// The transport is closed or lost.
  package mutating func transportEnded(_ body: (WebSocketAction) -> Void) {
    switch phase {
    case .open: end(WebSocketEnding(.abnormal, "the transport ended without a Close frame"), body)
    case .closing(let ending, _): end(ending, body)
    case .ended: break
    }
  }

  /// Time has passed: sends a ping that is due, and gives up a peer that didn't answer.
  package mutating func tick(now: UInt64, output: inout [UInt8], _ body: (WebSocketAction) -> Void) {
    switch phase {
    case .closing(let ending, let since) where now >= since + rules.patience: end(ending, body)
    case .open where rules.pingAfter > 0:
      if let pingSent {
        guard now >= pingSent + rules.patience else { return }
        end(
          WebSocketEnding(.abnormal, "the peer didn't answer a ping for \(rules.patience / 1_000_000_000) s"),
          body)
      } else if now >= lastReceived + rules.pingAfter {
        pingSent = now
        unsafe WebSocketEncoder.append(
          .ping, UnsafeRawBufferPointer(start: nil, count: 0), mask: mask, to: &output)
      }
    default: break
    }
  }

  /// The time of the next ``tick(now:output:_:)`` that does something; nil for none.
  package var deadline: UInt64? {
    switch phase {
    case .closing(_, let since): since + rules.patience
    case .open where rules.pingAfter > 0:
      pingSent.map { $0 + rules.patience } ?? lastReceived + rules.pingAfter
    default: nil
    }
  }

  // MARK: Frames

  private mutating func take(
    _ event: WebSocketEvent, output: inout [UInt8],
    _ body: (WebSocketAction) throws(WebSocketError) -> Bool
  ) throws(WebSocketError) -> Bool {
    switch event {
    case .part(let isText, let bytes, let isFirst, let isLast, let isCompressed):
      guard phase == .open else { return true }
      guard !isText || rules.takesText else {
        throw WebSocketError(
          .unsupportedData, "a text message came; the subprotocol has binary messages only")
      }
      return try unsafe body(
        .part(isText: isText, bytes, isFirst: isFirst, isLast: isLast, isCompressed: isCompressed))
    case .ping(let payload):
      guard phase == .open else { return true }
      unsafe WebSocketEncoder.append(.pong, payload, mask: mask, to: &output)
    case .pong: break
    case .close(let code, let reason):
      var ending = WebSocketEnding(code, unsafe String(decoding: reason, as: UTF8.self))
      switch phase {
      case .closing(let own, _): ending = own
      case .open: WebSocketEncoder.appendClose(code, reason: "", mask: mask, to: &output)
      case .ended: return true
      }
      phase = .ended
      return try body(.end(ending))
    }
    return true
  }

  /// The peer has broken the protocol's rules in a way that its user has found.
  package mutating func fail(
    _ error: WebSocketError, output: inout [UInt8], _ body: (WebSocketAction) -> Void
  ) {
    if phase == .open {
      WebSocketEncoder.appendClose(error.code, reason: error.message, mask: mask, to: &output)
    }
    end(WebSocketEnding(error.code, error.message, isViolation: true), body)
  }

  private mutating func end(_ ending: WebSocketEnding, _ body: (WebSocketAction) -> Void) {
    guard phase != .ended else { return }
    phase = .ended
    body(.end(ending))
  }

  /// This side's mask for control frames.
  private var mask: WebSocketMask? {
    guard side == .client else { return nil }
    let key = UInt32.random(in: 0...UInt32.max)
    return WebSocketMask(
      (
        UInt8(truncatingIfNeeded: key), UInt8(truncatingIfNeeded: key >> 8),
        UInt8(truncatingIfNeeded: key >> 16), UInt8(truncatingIfNeeded: key >> 24)
      ))
  }
}
