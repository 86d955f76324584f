import SluiceWire

@_exported import struct SluiceWire.TopicInfo
@_exported import struct SluiceWire.TopicSettings
@_exported import struct SluiceWire.TopicSummary

// Questions to the broker, each with a callback and an `async` form. Callbacks are called on the client's loop, once.
//
// Without a connection they wait for one, within their timeout. When the connection is lost before the answer came, those that do the
// same when they are done twice are asked again; deleting isn't one of them, and fails with why the connection was lost.
extension Client {
  /// All topics, in byte order of their names.
  ///
  /// - Throws: ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func topics() async throws(ClientError) -> [TopicSummary] {
    let reply = Reply<[TopicSummary]>()
    topics(completion: reply.complete)
    return try await reply.value()
  }

  public func topics(completion: @escaping @Sendable (Result<[TopicSummary], ClientError>) -> Void) {
    topics(behind: [], completion: completion)
  }

  /// The first topics whose names begin with `prefix`, at most `limit`; costs what there are of them, not what there is in all.
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

  /// Asks page by page. Topics that come and go meanwhile may be there or not.
  ///
  /// - Parameter isEnough: whether no other page is wanted.
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

  /// What a topic is and who is attached to it.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func topic(show name: String) async throws(ClientError) -> TopicInfo {
    let reply = Reply<TopicInfo>()
    topic(show: name, completion: reply.complete)
    return try await reply.value()
  }

  public func topic(
    show name: String, completion: @escaping @Sendable (Result<TopicInfo, ClientError>) -> Void
  ) {
    askForInfo(.show(TopicShow(topic: name)), completion)
  }

  /// Creates a topic with settings of its own; those that are nil are the broker's defaults. A topic that exists with the same
  /// settings is left as it is.
  ///
  /// - Throws: ``ClientError/Code/topicExists`` when it has others; ``ClientError/Code/invalidSetting``,
  ///   ``ClientError/Code/invalidTopic``; ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  @discardableResult
  public func createTopic(
    _ name: String, settings: TopicSettings = TopicSettings()
  ) async throws(ClientError) -> TopicInfo {
    let reply = Reply<TopicInfo>()
    createTopic(name, settings: settings, completion: reply.complete)
    return try await reply.value()
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
    let reply = Reply<Void>()
    deleteTopic(name, completion: reply.complete)
    try await reply.value()
  }

  public func deleteTopic(
    _ name: String, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.delete(TopicDelete(topic: name))) { completion($0.map { _ in }) }
  }

  /// Connects a topic whose setting `connect` is manual, so that its producers are asked for records.
  ///
  /// It stays connected until ``disconnectTopic(_:)``, whoever comes and goes.
  ///
  /// - Throws: ``ClientError/Code/unsupported`` when the topic connects by itself; why the connection is over; ``ClientError/Code/cancelled``.
  public func connectTopic(_ name: String) async throws(ClientError) {
    let reply = Reply<Void>()
    connectTopic(name, completion: reply.complete)
    try await reply.value()
  }

  public func connectTopic(
    _ name: String, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.connect(TopicConnect(topic: name))) { completion($0.map { _ in }) }
  }

  /// Takes ``connectTopic(_:)`` back. Subscribers aren't told.
  ///
  /// - Throws: as ``connectTopic(_:)``.
  public func disconnectTopic(_ name: String) async throws(ClientError) {
    let reply = Reply<Void>()
    disconnectTopic(name, completion: reply.complete)
    try await reply.value()
  }

  public func disconnectTopic(
    _ name: String, completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    ask(.disconnect(TopicDisconnect(topic: name))) { completion($0.map { _ in }) }
  }

  /// How long a question to the broker and its answer take.
  ///
  /// - Throws: ``ClientError/Code/requestTimeout``; why the client is over;
  ///   ``ClientError/Code/cancelled``.
  public func ping() async throws(ClientError) -> Duration {
    let reply = Reply<Duration>()
    ping(completion: reply.complete)
    return try await reply.value()
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

  // MARK: How

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
  /// A text behind which, in byte order, come this one and what begins with it, and before that next to nothing.
  fileprivate var justBefore: String {
    guard let last = unicodeScalars.last, last.value > 0 else { return "" }
    // In front of U+E000 there are numbers that no character has.
    let before = Unicode.Scalar(last.value - 1) ?? "\u{D7FF}"
    return String(String.UnicodeScalarView(unicodeScalars.dropLast() + [before, "\u{10FFFF}"]))
  }
}

extension ClientError {
  static let oddAnswer = ClientError(
    .protocolViolation,
    "the broker answered a request with something else; are client and broker of compatible versions?")
}
