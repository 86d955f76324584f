/// The trace to which a record belongs, in the format of W3C Trace Context: OpenTelemetry's propagators read and write the same two headers.
///
/// ```swift
/// for try await record in client.topic("orders.eu").values {
///   var message = Message("shipped")
///   // The trace of the record that this is about, with a span of its own.
///   message.trace = record.trace?.child()
///   subject.send(message)
/// }
/// ```
///
/// The broker keeps headers as they are. Replies to requests carry the trace of their request by themselves.
public struct TraceContext: Hashable, Sendable {
  /// The headers' names.
  public static let parentHeader = "traceparent"
  public static let stateHeader = "tracestate"

  /// 32 hexadecimal digits in lower case, not all zero.
  public let traceID: String
  /// The parent of the next span: 16 hexadecimal digits in lower case, not all zero.
  public let spanID: String
  /// Bit 0: the trace is recorded.
  public var flags: UInt8
  /// The state of tracing vendors; empty for none.
  public var state: String

  /// The context in the headers' values.
  ///
  /// - Parameters:
  ///   - traceparent: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`. In later versions of the format, only the fields of version 00 are read.
  ///   - tracestate: kept unchanged.
  /// - Returns: nil for an invalid `traceparent`.
  public init?(traceparent: String, tracestate: String = "") {
    let parts = traceparent.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 4, let version = Self.byte(parts[0]), version != 0xFF,
      version > 0 || parts.count == 4,
      Self.isIdentifier(parts[1], 32), Self.isIdentifier(parts[2], 16), let flags = Self.byte(parts[3])
    else { return nil }
    (traceID, spanID) = (String(parts[1]), String(parts[2]))
    self.flags = flags
    state = tracestate
  }

  /// A new trace, which is recorded.
  public init() {
    traceID = Self.randomIdentifier(32)
    spanID = Self.randomIdentifier(16)
    flags = 1
    state = ""
  }

  private init(traceID: String, spanID: String, flags: UInt8, state: String) {
    self.traceID = traceID
    self.spanID = spanID
    self.flags = flags
    self.state = state
  }

  /// The header's value.
  public var traceparent: String {
    "00-\(traceID)-\(spanID)-\(flags < 16 ? "0" : "")\(String(flags, radix: 16))"
  }

  /// The same trace with another span, which has a random identifier.
  public func child() -> TraceContext {
    TraceContext(traceID: traceID, spanID: Self.randomIdentifier(16), flags: flags, state: state)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }

  private static func isIdentifier(_ text: Substring, _ count: Int) -> Bool {
    text.utf8.count == count && text.utf8.allSatisfy(isDigit)
      && text.utf8.contains { $0 != UInt8(ascii: "0") }
  }

  private static func byte(_ text: Substring) -> UInt8? {
    text.utf8.count == 2 && text.utf8.allSatisfy(isDigit) ? UInt8(text, radix: 16) : nil
  }

  private static func randomIdentifier(_ count: Int) -> String {
    while true {
      let digits = Array("0123456789abcdef")
      let text = String((0..<count).map { _ in digits[Int.random(in: 0..<16)] })
      if isIdentifier(text[...], count) { return text }
    }
  }
}

extension Message {
  /// The trace in the headers `traceparent` and `tracestate`; nil if they are missing or invalid. Setting it replaces both headers.
  public var trace: TraceContext? {
    get { TraceContext(headers) }
    set {
      headers.removeAll { $0.name == TraceContext.parentHeader || $0.name == TraceContext.stateHeader }
      guard let newValue else { return }
      headers.append(Header(TraceContext.parentHeader, newValue.traceparent))
      if !newValue.state.isEmpty { headers.append(Header(TraceContext.stateHeader, newValue.state)) }
    }
  }
}

extension TopicRecord {
  /// The trace in the headers `traceparent` and `tracestate`; nil if they are missing or invalid. Decoded at each access.
  public var trace: TraceContext? { TraceContext(headers) }
}

extension TraceContext {
  fileprivate init?(_ headers: [Message.Header]) {
    func values(_ name: String) -> [String] { headers.filter { $0.name == name }.map(\.string) }
    // Several parents contradict each other; several states are one list.
    let parents = values(Self.parentHeader)
    guard parents.count == 1 else { return nil }
    self.init(traceparent: parents[0], tracestate: values(Self.stateHeader).joined(separator: ","))
  }
}
