import Foundation
import SluiceWire

/// `Protocol-vectors.json`, beside the protocol's page.
public struct ProtocolVectors: Codable, Sendable {
  /// A valid frame.
  public struct Frame: Codable, Sendable, CustomStringConvertible {
    public var name: String
    public var frame: String
    /// `client`, `broker`, or `both`.
    public var sender: String
    public var stream: UInt32
    public var fields: VectorValue
    /// Header and body.
    public var hex: String

    public init(name: String, frame: String, sender: String, stream: UInt32, fields: VectorValue, hex: String)
    {
      self.name = name
      self.frame = frame
      self.sender = sender
      self.stream = stream
      self.fields = fields
      self.hex = hex
    }

    public var description: String { name }
  }

  /// A frame that its receiver rejects.
  public struct Malformed: Codable, Sendable, CustomStringConvertible {
    public var name: String
    public var receiver: String
    /// Whether it is the receiver's first frame.
    public var opening: Bool
    public var hex: String
    /// The name of the error's code.
    public var error: String

    public var description: String { name }
  }

  /// A frame that one client sends or receives.
  public struct Step: Codable, Sendable {
    public var client: Int
    /// The frame's name, in one of these two.
    public var sends: String?
    public var receives: String?
    public var stream: UInt32
    public var fields: VectorValue
    public var hex: String

    public init(
      client: Int, sends: String? = nil, receives: String? = nil, stream: UInt32, fields: VectorValue,
      hex: String
    ) {
      self.client = client
      self.sends = sends
      self.receives = receives
      self.stream = stream
      self.fields = fields
      self.hex = hex
    }
  }

  public struct Session: Codable, Sendable, CustomStringConvertible {
    public var name: String
    public var about: String
    /// Permissions by identity, for a broker that requires authentication; each has the password `right`.
    public var identities: [String: String]
    public var steps: [Step]

    public var description: String { name }
  }

  public var about: [String]
  public var version: Int
  public var frames: [Frame]
  public var malformed: [Malformed]
  public var sessions: [Session]

  public init(
    about: [String], version: Int, frames: [Frame], malformed: [Malformed], sessions: [Session]
  ) {
    self.about = about
    self.version = version
    self.frames = frames
    self.malformed = malformed
    self.sessions = sessions
  }

  public static let url = URL(filePath: #filePath)
    .appending(path: "../../../../Sources/SluiceWire/SluiceWire.docc/Protocol-vectors.json").standardized

  public static func load() throws -> ProtocolVectors {
    try JSONDecoder().decode(ProtocolVectors.self, from: try Data(contentsOf: url))
  }

  public static func layout(of name: String) throws -> AnyVectorLayout {
    guard let layout = AnyVectorLayout.all.values.first(where: { $0.type.description == name }) else {
      throw TestFailure("there is no frame \(name)")
    }
    return layout
  }

  /// A whole frame.
  public static func bytes(_ name: String, stream: UInt32, _ fields: VectorFields) throws -> [UInt8] {
    let layout = try layout(of: name)
    let body = try layout.body(fields)
    var bytes = [UInt8](repeating: 0, count: FrameHeader.size)
    bytes.withUnsafeMutableBytes {
      FrameHeader(length: UInt32(body.count), type: layout.type, stream: stream).write(at: $0.baseAddress!)
    }
    return bytes + body
  }
}

/// The values of variables in a session, which the broker chooses. `*` stands for any value; a word after `$` stands for the same value everywhere.
public struct VectorBindings: Sendable {
  public private(set) var values: [String: VectorValue] = [:]

  public init() {}

  /// Whether a value matches the expected one of a session. Binds variables.
  public mutating func matches(_ expected: VectorValue, _ actual: VectorValue) -> Bool {
    switch (expected, actual) {
    case (.text("*"), _): return true
    case (.text(let name), _) where name.hasPrefix("$"):
      if let known = values[name] { return known == actual }
      values[name] = actual
      return true
    case (.list(let expected), .list(let actual)):
      guard expected.count == actual.count else { return false }
      for (expected, actual) in zip(expected, actual) where !matches(expected, actual) { return false }
      return true
    case (.object(let expected), .object(let actual)):
      guard expected.keys == actual.keys else { return false }
      for key in expected.keys.sorted() where !matches(expected[key]!, actual[key]!) { return false }
      return true
    default: return expected == actual
    }
  }

  /// A value with its variables replaced.
  public func resolved(_ value: VectorValue) -> VectorValue {
    switch value {
    case .text(let name) where name.hasPrefix("$"): values[name] ?? value
    case .list(let list): .list(list.map { resolved($0) })
    case .object(let object): .object(object.mapValues { resolved($0) })
    default: value
    }
  }
}
