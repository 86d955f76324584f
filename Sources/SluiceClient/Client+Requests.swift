import SluiceWire

@_exported import struct SluiceWire.TopicInfo
@_exported import struct SluiceWire.TopicSettings
@_exported import struct SluiceWire.TopicSummary

// Requests to the broker, each with a completion and an `async` form. Completions are called once, on the client's loop.
//
// Without a connection a request awaits one, within its timeout. If the connection is lost before the answer, idempotent requests are sent
// again on the next connection; deletions fail with the reason of the loss.
extension Client {
  /// All topics, in byte order of their names.
  ///
  /// - Throws: ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func topics() async throws(ClientError) -> [TopicSummary] {
    try await Reply.wait { topics(completion: $0) }
  }

  public func topics(completion: @escaping @Sendable (Result<[TopicSummary], ClientError>) -> Void) {
    topics(behind: [], completion: completion)
  }

  /// The first topics whose names begin with `prefix`, at most `limit`. The cost depends on their number, not on that of all topics.
  package func topics(
    withPrefix prefix: String, limit: Int,
    completion: @escaping @Sendable (Result<[TopicSummary], ClientError>) -> Void
  ) {
    let page = UInt32(clamping: min(limit, Int(Self.pageSize)))
    topics(behind: [], after: prefix.justBefore, page) { topics in
      topics.count >= limit || topics.last.map { !$0.topic.utf8.starts(with: prefix.utf8) } ?? false
    } completion: { result in
      completion(
        result.map { topics in
          Array(topics.filter { $0.topic.utf8.starts(with: prefix.utf8) }.prefix(limit))
        })
    }
  }

  /// Requests page by page. Topics that are created or deleted meanwhile may be included or not.
  ///
  /// - Parameter isEnough: whether no further page is needed.
  private func topics(
    behind topics: [TopicSummary], after name: String = "", _ pageSize: UInt32 = Client.pageSize,
    until isEnough: @escaping @Sendable ([TopicSummary]) -> Bool = { _ in false },
    completion: @escaping @Sendable (Result<[TopicSummary], ClientError>) -> Void
  ) {
    let after = topics.last?.topic ?? name
    ask(.topics(TopicList(after: after, limit: pageSize))) { [weak self] result in
      let page: Topics
      switch result {
      case .success(.topics(let topics)): page = topics
      case .success: return completion(.failure(.oddAnswer))
      case .failure(let error): return completion(.failure(error))
      }
      let all = topics + page.topics
      guard page.more, !page.topics.isEmpty, !isEnough(all) else { return completion(.success(all)) }
      guard let self else { return completion(.failure(.closedHere)) }
      self.topics(behind: all, pageSize, until: isEnough, completion: completion)
    }
  }

  private static var pageSize: UInt32 { 1_000 }

  /// A topic's settings and state, and the clients attached to it.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func topic(show name: String) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { topic(show: name, completion: $0) }
  }

  public func topic(
    show name: String, completion: @escaping @Sendable (Result<TopicInfo, ClientError>) -> Void
  ) {
    askForInfo(.show(TopicShow(topic: name)), completion)
  }

  /// Creates a topic with these settings; the broker's defaults replace those that are nil. An existing topic with the same settings
  /// stays as it is.
  ///
  /// - Throws: ``ClientError/Code/topicExists`` if it has other settings; ``ClientError/Code/invalidSetting``,
  ///   ``ClientError/Code/invalidTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  @discardableResult
  public func createTopic(
    _ name: String, settings: TopicSettings = TopicSettings()
  ) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { createTopic(name, settings: settings, completion: $0) }
  }

  public func createTopic(
    _ name: String, settings: TopicSettings = TopicSettings(),
    completion: @escaping @Sendable (Result<TopicInfo, ClientError>) -> Void
  ) {
    askForInfo(.create(TopicCreate(topic: name, settings: settings)), completion)
  }

  /// Deletes a topic and its records. Its subscribers and producers end with ``ClientError/Code/topicDeleted``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func deleteTopic(_ name: String) async throws(ClientError) {
    try await Reply.wait { deleteTopic(name, completion: $0) }
  }

  public func deleteTopic(
    _ name: String, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.delete(TopicDelete(topic: name))) { completion($0.map { _ in }) }
  }

  /// Connects a topic whose setting `connect` is manual, so that the broker grants its producers records.
  ///
  /// It stays connected until ``disconnectTopic(_:)``, independently of its producers and subscribers.
  ///
  /// - Throws: ``ClientError/Code/unsupported`` when the topic connects by itself; why the connection is over; ``ClientError/Code/cancelled``.
  public func connectTopic(_ name: String) async throws(ClientError) {
    try await Reply.wait { connectTopic(name, completion: $0) }
  }

  public func connectTopic(
    _ name: String, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.connect(TopicConnect(topic: name))) { completion($0.map { _ in }) }
  }

  /// Disconnects a topic, see ``connectTopic(_:)``. Subscribers aren't notified.
  ///
  /// - Throws: as ``connectTopic(_:)``.
  public func disconnectTopic(_ name: String) async throws(ClientError) {
    try await Reply.wait { disconnectTopic(name, completion: $0) }
  }

  public func disconnectTopic(
    _ name: String, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.disconnect(TopicDisconnect(topic: name))) { completion($0.map { _ in }) }
  }

  /// The round-trip time to the broker.
  ///
  /// - Throws: ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func ping() async throws(ClientError) -> Duration {
    try await Reply.wait { ping(completion: $0) }
  }

  public func ping(completion: @escaping @Sendable (Result<Duration, ClientError>) -> Void) {
    ask(.ping) { result in
      completion(
        result.flatMap { answer in
          guard case .pong(let time) = answer else { return .failure(.oddAnswer) }
          return .success(time)
        })
    }
  }

  // MARK: Sending

  private func askForInfo(
    _ question: Request.Question, _ completion: @escaping @Sendable (Result<TopicInfo, ClientError>) -> Void
  ) {
    ask(question) { result in
      completion(
        result.flatMap { answer in
          guard case .info(let info) = answer else { return .failure(.oddAnswer) }
          return .success(info)
        })
    }
  }

  func ask(
    _ question: Request.Question,
    _ completion: @escaping @Sendable (Result<Request.Answer, ClientError>) -> Void
  ) {
    core.post(.open(.request(Request(question, timeout: core.options.requestTimeout, completion))))
  }
}

extension String {
  /// A string that precedes this one in byte order, with hardly any strings between the two.
  fileprivate var justBefore: String {
    guard let last = unicodeScalars.last, last.value > 0 else { return "" }
    // The code points before U+E000 are surrogates, which no character has.
    let before = Unicode.Scalar(last.value - 1) ?? "\u{D7FF}"
    return String(String.UnicodeScalarView(unicodeScalars.dropLast() + [before, "\u{10FFFF}"]))
  }
}

extension ClientError {
  static let oddAnswer = ClientError(
    .protocolViolation,
    "the broker answered a request with another kind of frame; are client and broker of compatible versions?")
}
