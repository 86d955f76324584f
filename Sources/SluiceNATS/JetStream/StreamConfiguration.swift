import SluiceIO

/// The settings of a stream that Sluice uses. Updating a stream sets all others to their defaults.
public struct StreamConfiguration: Hashable, Sendable, Codable {
  public enum Storage: String, Hashable, Sendable, Codable {
    case file
    case memory
  }

  /// The messages to drop when a limit is reached.
  public enum Discard: String, Hashable, Sendable, Codable {
    /// The oldest messages.
    case old
    /// The new message, which is rejected.
    case new
  }

  public var name: String
  /// May contain wildcards. Streams of an account must not overlap.
  public var subjects: [String]
  public var storage = Storage.file
  public var replicas = 1
  /// The most messages of one subject; -1 for no limit.
  public var maximumPerSubject: Int64 = -1
  /// The most bytes; -1 for no limit.
  public var maximumBytes: Int64 = -1
  public var discard = Discard.old
  /// How long message IDs are kept for the detection of duplicates, in nanoseconds; nil for the engine's two minutes.
  public var duplicateWindow: Int64?
  /// Whether atomic batches may be published.
  public var allowsAtomicBatches = false
  /// Whether all replicas answer reads, and not only the leader.
  public var allowsDirectReads = false
  public var allowsRollUp = false
  public var allowsTimeToLive = false
  /// How long a marker replaces a message that has reached its time to live, in nanoseconds, at least a second; nil for no markers.
  public var deleteMarkerTimeToLive: Int64?

  public init(_ name: String, subjects: [String]) {
    self.name = name
    self.subjects = subjects
  }

  private enum CodingKeys: String, CodingKey {
    case name
    case subjects
    case storage
    case replicas = "num_replicas"
    case maximumPerSubject = "max_msgs_per_subject"
    case maximumBytes = "max_bytes"
    case discard
    case duplicateWindow = "duplicate_window"
    case allowsAtomicBatches = "allow_atomic"
    case allowsDirectReads = "allow_direct"
    case allowsRollUp = "allow_rollup_hdrs"
    case allowsTimeToLive = "allow_msg_ttl"
    case deleteMarkerTimeToLive = "subject_delete_marker_ttl"
  }

  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    name = try fields.decode(String.self, forKey: .name)
    subjects = try fields.decodeIfPresent([String].self, forKey: .subjects) ?? []
    storage = try fields.decodeIfPresent(Storage.self, forKey: .storage) ?? .file
    replicas = try fields.decodeIfPresent(Int.self, forKey: .replicas) ?? 1
    maximumPerSubject = try fields.decodeIfPresent(Int64.self, forKey: .maximumPerSubject) ?? -1
    maximumBytes = try fields.decodeIfPresent(Int64.self, forKey: .maximumBytes) ?? -1
    discard = try fields.decodeIfPresent(Discard.self, forKey: .discard) ?? .old
    duplicateWindow = try fields.decodeIfPresent(Int64.self, forKey: .duplicateWindow)
    allowsAtomicBatches = try fields.decodeIfPresent(Bool.self, forKey: .allowsAtomicBatches) ?? false
    allowsDirectReads = try fields.decodeIfPresent(Bool.self, forKey: .allowsDirectReads) ?? false
    allowsRollUp = try fields.decodeIfPresent(Bool.self, forKey: .allowsRollUp) ?? false
    allowsTimeToLive = try fields.decodeIfPresent(Bool.self, forKey: .allowsTimeToLive) ?? false
    deleteMarkerTimeToLive = try fields.decodeIfPresent(Int64.self, forKey: .deleteMarkerTimeToLive)
  }
}

/// The present state of a stream.
public struct StreamInfo: Hashable, Sendable, Decodable {
  public var configuration: StreamConfiguration
  public var state: State
  /// Nil without a cluster.
  public var cluster: Cluster?

  private enum CodingKeys: String, CodingKey {
    case configuration = "config"
    case state
    case cluster
  }

  public struct State: Hashable, Sendable, Decodable {
    public var messages: UInt64
    public var bytes: UInt64
    /// The first sequence that may have a message.
    public var firstSequence: UInt64
    /// The last sequence that was ever used; 0 for none.
    public var lastSequence: UInt64

    private enum CodingKeys: String, CodingKey {
      case messages
      case bytes
      case firstSequence = "first_seq"
      case lastSequence = "last_seq"
    }
  }

  /// The replicas of a stream.
  public struct Cluster: Hashable, Sendable, Decodable {
    /// The name of the stream's leader; nil while there is none.
    public var leader: String?
    /// The other replicas.
    public var replicas: [Replica]?
  }

  public struct Replica: Hashable, Sendable, Decodable {
    public var name: String
    /// Whether it is up to date with the leader.
    public var current: Bool?
    public var offline: Bool?
    /// The number of operations that it has yet to apply.
    public var lag: UInt64?
  }

  /// The names of all servers with a replica of the stream, sorted.
  public var servers: [String] {
    ([cluster?.leader].compactMap { $0 } + (cluster?.replicas ?? []).map(\.name)).sorted()
  }
}

extension JetStream {
  /// Creates a stream. An existing stream with the same name and the same settings isn't changed.
  ///
  /// Fails with ``NATSError/Code-swift.struct/streamExists`` if one exists with other settings.
  public func createStream(
    _ configuration: StreamConfiguration, _ completion: @escaping Completion<StreamInfo>
  ) throws(NATSError) {
    try Self.check(name: configuration.name)
    try call(
      "STREAM.CREATE.\(configuration.name)", configuration, of: configuration.name, isWrite: true, completion)
  }

  /// Changes a stream's settings.
  public func updateStream(
    _ configuration: StreamConfiguration, _ completion: @escaping Completion<StreamInfo>
  ) throws(NATSError) {
    try Self.check(name: configuration.name)
    try call(
      "STREAM.UPDATE.\(configuration.name)", configuration, of: configuration.name, isWrite: true, completion)
  }

  /// Requests the stream's settings and state from its leader.
  public func streamInfo(_ name: String, _ completion: @escaping Completion<StreamInfo>) throws(NATSError) {
    try Self.check(name: name)
    try call("STREAM.INFO.\(name)", NoBody?.none, of: name, completion)
  }

  private struct Success: Decodable {
    var success: Bool?
    var purged: UInt64?
  }

  /// Deletes a stream with everything in it.
  public func deleteStream(_ name: String, _ completion: @escaping Completion<Void>) throws(NATSError) {
    try Self.check(name: name)
    try call("STREAM.DELETE.\(name)", NoBody?.none, of: name, isWrite: true) {
      (result: Result<Success, NATSError>) in
      completion(result.map { _ in })
    }
  }

  private struct Purge: Encodable {
    var filter: String?
    var seq: UInt64?
  }

  /// Deletes messages. Unlike writes, this can't depend on the last sequence.
  ///
  /// - Parameters:
  ///   - name: the stream's name.
  ///   - pattern: the pattern that subjects must match; nil for all subjects.
  ///   - sequence: the sequence before which messages are deleted; nil for all.
  ///   - completion: called with the number of deleted messages.
  public func purge(
    _ name: String, matching pattern: String? = nil, before sequence: UInt64? = nil,
    _ completion: @escaping Completion<UInt64>
  ) throws(NATSError) {
    try Self.check(name: name)
    if let pattern { try NATSSubject.check(pattern, wildcards: true) }
    try call("STREAM.PURGE.\(name)", Purge(filter: pattern, seq: sequence), of: name, isWrite: true) {
      (result: Result<Success, NATSError>) in completion(result.map { $0.purged ?? 0 })
    }
  }
}
