import FoundationEssentials

/// The parts of the API of JetStream, the store of NATS, that Sluice needs.
///
/// All calls must be made on the client's loop, and complete on it, once. A call that throws has sent no request. A write without a known outcome fails with
/// ``NATSError/Code-swift.struct/outcomeUnknown``. The caller must find out the outcome before it repeats the write. For other errors,
/// ``NATSError/provesNothingWasStored`` reports the outcome.
///
/// | limit of the engine | |
/// |---|---|
/// | messages in an atomic batch | ``maximumBatch`` |
/// | open batches of a stream | ``maximumOpenBatches`` |
/// | time between a batch's messages | 10 s |
/// | subjects in one answer of ``lastMessages(of:matching:upTo:from:count:each:_:)`` | ``maximumSubjects`` |
/// | headers of a message | 64 KiB |
/// | headers and payload of a message | ``NATSClient/maximumPayload`` |
public struct JetStream {
  /// The most messages in an atomic batch.
  public static let maximumBatch = 1_000
  /// The most open batches of a stream.
  public static let maximumOpenBatches = 50
  /// The most subjects that one request for last messages may match.
  public static let maximumSubjects = 1_024

  public let client: NATSClient
  /// The time for an answer of the engine, or between several answers. Default: 5 s.
  public var timeout = Duration.seconds(5)
  /// The prefix of the API's subjects; with a domain it is `$JS.DOMAIN.API`.
  public var prefix = "$JS.API"

  public init(_ client: NATSClient) {
    self.client = client
  }

  public typealias Completion<Value> = (Result<Value, NATSError>) -> Void

  // MARK: Requests

  private struct Answer<Value: Decodable>: Decodable {
    var error: EngineError?
    var value: Value?

    private enum Key: CodingKey {
      case error
    }

    init(from decoder: any Decoder) throws {
      error = try decoder.container(keyedBy: Key.self).decodeIfPresent(EngineError.self, forKey: .error)
      value = error == nil ? try Value(from: decoder) : nil
    }
  }

  /// Sends a request to the API.
  ///
  /// - Parameters:
  ///   - call: the subject after the prefix.
  ///   - body: the request's JSON; nil for none.
  ///   - isWrite: whether the outcome is unknown when there is no answer.
  func call<Value: Decodable>(
    _ call: String, _ body: (some Encodable)?, of stream: String?, isWrite: Bool = false,
    _ completion: @escaping Completion<Value>
  ) throws(NATSError) {
    let client = client
    var payload: [UInt8] = []
    if let body {
      guard let data = try? JSONEncoder().encode(body) else {
        throw NATSError(.invalidRequest, "a request of JetStream's \(call) can't be made into JSON")
      }
      payload = [UInt8](data)
    }
    try client.request("\(prefix).\(call)", payload: payload, timeout: timeout) { result in
      completion(
        Self.unwrap(result, of: stream, isWrite: isWrite) { message throws(NATSError) in
          try Self.decode(message.payload, call, of: stream, server: client.server)
        })
    }
  }

  private static func decode<Value: Decodable>(
    _ json: NATSBytes, _ call: String, of stream: String?, server: String
  ) throws(NATSError) -> Value {
    guard let answer = try? JSONDecoder().decode(Answer<Value>.self, from: Data(json.array)) else {
      throw NATSError(
        .malformedAnswer,
        "the answer of JetStream's \(call) isn't the JSON that it should be; is its version 2.12 or later?",
        server: server)
    }
    if let error = answer.error { throw NATSError(error, stream: stream, server: server) }
    guard let value = answer.value else {
      throw NATSError(.malformedAnswer, "the answer of JetStream's \(call) is empty", server: server)
    }
    return value
  }

  /// Decodes an answer. A timeout of a write becomes an unknown outcome.
  static func unwrap<Value>(
    _ result: Result<NATSMessageView, NATSError>, of stream: String?, isWrite: Bool,
    _ read: (NATSMessageView) throws(NATSError) -> Value
  ) -> Result<Value, NATSError> {
    do throws(NATSError) {
      return .success(try read(try result.get()))
    } catch {
      var error = error
      if let stream { error.stream = stream }
      if isWrite, error.code == .timeout { error.code = .outcomeUnknown }
      return .failure(error)
    }
  }

  /// Checks a name of a stream or consumer, which becomes a token of a subject.
  static func check(name: String) throws(NATSError) {
    guard !name.isEmpty, name.utf8.count <= 255,
      name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !".*>/\\".utf8.contains($0) })
    else {
      throw NATSError(
        .invalidRequest,
        "'\(NATSError.bounded(name))' can't be the name of a stream or consumer: use letters, digits, '-' and '_'"
      )
    }
  }

  struct NoBody: Encodable {}

  // MARK: The account

  /// The account's use and its limits.
  public func accountInfo(_ completion: @escaping Completion<AccountInfo>) throws(NATSError) {
    try call("INFO", NoBody?.none, of: nil, completion)
  }
}

/// An account's use of JetStream.
public struct AccountInfo: Hashable, Sendable, Decodable {
  /// Bytes in memory and on disk.
  public var memory: UInt64
  public var storage: UInt64
  public var streams: Int
  public var consumers: Int
  public var limits: Limits

  /// The account's limit; -1 for no limit.
  public struct Limits: Hashable, Sendable, Decodable {
    public var maximumMemory: Int64
    public var maximumStorage: Int64
    public var maximumStreams: Int64
    public var maximumConsumers: Int64

    private enum CodingKeys: String, CodingKey {
      case maximumMemory = "max_memory"
      case maximumStorage = "max_storage"
      case maximumStreams = "max_streams"
      case maximumConsumers = "max_consumers"
    }
  }
}
