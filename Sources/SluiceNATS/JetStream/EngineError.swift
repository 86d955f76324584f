/// JetStream's own description of an error in its answers.
struct EngineError: Decodable {
  var code: Int?
  var err_code: Int?
  var description: String?
}

extension NATSError {
  /// Translates a JetStream error.
  ///
  /// - Parameters:
  ///   - stream: the stream of the request; nil for none.
  ///   - server: the server to which the client is connected.
  init(_ error: EngineError, stream: String?, server: String) {
    let number = error.err_code ?? 0
    let text = NATSError.bounded(error.description ?? "without a description")
    let (code, meaning) = Self.meaning(of: number, text)
    self.init(
      code, "JetStream: \(text)\(number == 0 ? "" : " (\(number))")\(meaning.isEmpty ? "" : "; \(meaning)")",
      server: server)
    self.stream = stream
    engineCode = number
    if code == .wrongLastSequence, let digits = text.split(separator: " ").last {
      lastSequence = UInt64(digits)
    }
  }

  private static func meaning(of number: Int, _ text: String) -> (Code, String) {
    switch number {
    case 10071, 10164:
      (.wrongLastSequence, "another writer has stored something since; nothing of this was stored")
    case 10059: (.streamNotFound, "create it first")
    case 10058: (.streamExists, "it has other settings; update it or use another name")
    case 10065:
      (.invalidRequest, "its subjects belong to another stream already; delete that or use other subjects")
    case 10014: (.consumerNotFound, "")
    case 10037, 10043: (.messageNotFound, "")
    case 10002, 10023, 10028, 10047:
      (.resourcesExhausted, "give the engine more storage, or delete what isn't needed")
    case 10026, 10027, 10113, 10120, 10122: (.resourcesExhausted, "raise the account's limits")
    case 10077 where text.contains("maximum") || text.contains("no space") || text.contains("insufficient"):
      (.resourcesExhausted, "give the stream or the engine more storage, or delete what isn't needed")
    case 10004, 10006...10010, 10041, 10118, 10119, 10163, 10167, 10194, 10195:
      (.unavailable, "the engine has no leader at present or is busy; try again")
    case 10039, 10076: (.unavailable, "enable JetStream at the server and for the account")
    case 10174: (.batchRefused, "set allow_atomic in the stream's settings")
    case 10176:
      (
        .batchRefused,
        "some of its messages didn't arrive within 10 seconds, or the stream has more than \(JetStream.maximumOpenBatches) open batches; nothing was stored"
      )
    case 10175, 10177, 10179, 10199, 10200, 10201: (.batchRefused, "nothing was stored")
    case 10210:
      (
        .batchRefused,
        "the stream has more than \(JetStream.maximumOpenBatches) open batches; send fewer at a time"
      )
    case 10003, 10025, 10052, 10054, 10060, 10093, 10097, 10165, 10166: (.invalidRequest, "")
    default: (.refused, "")
    }
  }

  /// Whether the error proves that nothing was stored, so that a write may be tried again.
  public var provesNothingWasStored: Bool {
    let codes: [Code] = [
      .notSent, .closed, .backlogFull, .payloadTooLarge, .invalidSubject, .invalidHeader, .permissionDenied,
      .noResponders, .wrongLastSequence, .streamNotFound, .batchRefused, .invalidRequest,
    ]
    return codes.contains(code)
  }
}
