/// HELLO: the client's first frame, on stream 0.
///
/// ```
/// u32 magic "SLCE" · u16 lowest version · u16 highest version · u64 features · u32 max frame · u32 keepalive ms · string name
/// credentials
/// ```
public struct Hello: LaidOutFrame {
  public static let type = FrameType.hello
  /// The bytes `S L C E`.
  public static let magic: UInt32 = 0x4543_4C53

  /// The protocol versions that the client speaks, both included.
  public var versions: ClosedRange<UInt16>
  /// The client's abilities beyond the version, one bit each: see ``Feature``.
  public var features: UInt64
  /// The longest frame body, in bytes, that the client takes; at least ``Limits/smallestFrame``.
  public var maximumFrame: UInt32
  /// The silence, in milliseconds, after which the client would be given up; 0 leaves it to the broker.
  public var keepalive: UInt32
  /// The client's name, for operators of the broker; may be empty.
  public var name: String
  /// The client's identity and its proof.
  public var credentials: Credentials

  public init(
    versions: ClosedRange<UInt16> = 1...1, features: UInt64 = 0, maximumFrame: UInt32, keepalive: UInt32,
    name: String, credentials: Credentials = .none
  ) {
    self.versions = versions
    self.features = features
    self.maximumFrame = maximumFrame
    self.keepalive = keepalive
    self.name = name
    self.credentials = credentials
  }

  public static let layout = FrameLayout(
    Self.init,
    Field(
      write: { owner, writer in
        writer.integer(owner.versions.lowerBound)
        writer.integer(owner.versions.upperBound)
      },
      read: { (reader: inout FieldReader) throws(WireError) in
        let lowest: UInt16 = try reader.bytes.integer("HELLO lowest version")
        let highest: UInt16 = try reader.bytes.integer("HELLO highest version")
        guard lowest <= highest else {
          throw WireError(
            .malformedFrame, "HELLO names version \(lowest) as lowest and \(highest) as highest")
        }
        return lowest...highest
      }
    ).padded(magic: "HELLO magic"), Field.integer("HELLO features", \Self.features),
    Field.integer("HELLO maximum frame", \Self.maximumFrame),
    Field.integer("HELLO keepalive", \Self.keepalive),
    Field.string("HELLO name", limit: Limits.name, \Self.name),
    Field.part(\Self.credentials, Credentials.layout))
}
