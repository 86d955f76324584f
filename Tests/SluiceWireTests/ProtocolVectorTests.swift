import SluiceWire
import TestSupport
import Testing

/// The published test vectors, against the codec in both directions.
@Suite("Protocol vectors")
struct ProtocolVectorTests {
  private static let document = Result { try ProtocolVectors.load() }
  private static let frameVectors: [ProtocolVectors.Frame] = (try? document.get().frames) ?? []
  private static let refusals: [ProtocolVectors.Malformed] = (try? document.get().malformed) ?? []

  @Test("the file can be read")
  func file() throws {
    let vectors = try Self.document.get()
    #expect(vectors.version == 1)
    #expect(vectors.frames.count > 70 && vectors.malformed.count > 30 && vectors.sessions.count > 6)
    #expect(Set(vectors.frames.map(\.name)).count == vectors.frames.count)
    #expect(Set(vectors.malformed.map(\.name)).count == vectors.malformed.count)
  }

  @Test("fields become the bytes, and bytes the fields", arguments: frameVectors)
  func frames(_ vector: ProtocolVectors.Frame) throws {
    let bytes = [UInt8](hex: vector.hex)
    let fields = try vector.fields.fields
    #expect(try ProtocolVectors.bytes(vector.frame, stream: vector.stream, fields).hex == bytes.hex)
    let header = bytes.withUnsafeBytes { FrameHeader(at: $0.baseAddress!) }
    let body = Array(bytes[FrameHeader.size...])
    #expect(header.type.description == vector.frame && header.stream == vector.stream)
    #expect(Int(header.length) == body.count)
    #expect(try ProtocolVectors.layout(of: vector.frame).fields(body) == fields)
    for (side, receiver) in [(Side.broker, "client"), (.client, "broker")] {
      let isTaken = (try? header.admission(at: side)) == .take
      #expect(isTaken == (vector.sender == receiver || vector.sender == "both"), "\(side)")
    }
  }

  @Test("every type of frame has a vector")
  func everyType() {
    let shown = Set(Self.frameVectors.map(\.frame))
    for type in AnyVectorLayout.all.values.map(\.type.description) {
      #expect(shown.contains(type), "\(type)")
    }
    let known = (0...0xFF as ClosedRange<UInt8>).map { FrameType(rawValue: $0) }
      .filter { !$0.description.hasPrefix("frame type") }
    #expect(Set(known) == Set(AnyVectorLayout.all.values.map(\.type)))
  }

  @Test(
    "every error code has a vector: an ERROR, GOAWAY or COMPLETE that names it, or a frame that causes it")
  func everyErrorCode() throws {
    var shown = Set(Self.refusals.map(\.error))
    for vector in Self.frameVectors where vector.frame == "ERROR" {
      shown.insert(ErrorCode(rawValue: try vector.fields.fields.integer("code")).description)
    }
    let known = (0...300).map { ErrorCode(rawValue: $0).description }.filter { !$0.hasPrefix("error ") }
    for code in known { #expect(shown.contains(code), "\(code)") }
  }

  @Test("what is malformed is refused with its error", arguments: refusals)
  func malformed(_ vector: ProtocolVectors.Malformed) throws {
    let receiver: Side = vector.receiver == "broker" ? .broker : .client
    #expect(error(of: [UInt8](hex: vector.hex), at: receiver, isOpening: vector.opening) == vector.error)
  }

  /// A receiver's result for one frame.
  private func error(of bytes: [UInt8], at receiver: Side, isOpening: Bool) -> String? {
    var decoder = FrameDecoder(
      maximumFrame: isOpening ? Limits.handshakeFrame : Limits.smallestFrame,
      openingAt: isOpening ? receiver : nil)
    do {
      try bytes.withUnsafeBytes { bytes in
        try decoder.decode(bytes) { header, body throws(WireError) in
          try take(header, body, at: receiver)
          return true
        }
      }
      return nil
    } catch {
      return (error as? WireError)?.code.description
    }
  }

  private func take(
    _ header: FrameHeader, _ body: UnsafeRawBufferPointer, at receiver: Side
  ) throws(WireError) {
    guard try header.admission(at: receiver) == .take else { return }
    if header.type == .publish {
      let (header, batch) = try PublishHeader.decode(body)
      try RecordLayout.validate(batch, count: header.count, maximumRecord: 1 << 20)
    }
    if let error = AnyVectorLayout.all[header.type.rawValue]?.error(Array(body)) { throw error }
    if header.type == .hello {
      let offer = Welcome(
        maximumFrame: 1 << 20, maximumRecord: 1 << 20, maximumStreams: 8, keepalive: 0, broker: 1,
        software: "")
      _ = try ServerHandshake(offer: offer).receive(header, body)
    }
  }
}
