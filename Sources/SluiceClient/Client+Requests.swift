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
  /// - Throws: ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  public func topics() async throws(ClientError) -> [TopicSummary] {
    try await Reply.wait { topics(completion: $0) }
  }

  public func topics(completion: @escaping Completion<[TopicSummary]>) {
    pages({ (page: Topics) in (page.topics, page.more) }, completion) {
      TopicList(after: $0?.topic ?? "", limit: Self.pageSize)
    }
  }

  /// The first topics whose names begin with `prefix`, at most `limit`. The cost depends on their number, not on that of all topics.
  package func topics(
    withPrefix prefix: String, limit: Int,
    completion: @escaping Completion<[TopicSummary]>
  ) {
    let page = UInt32(clamping: min(limit, Int(Self.pageSize)))
    let isEnough: @Sendable ([TopicSummary]) -> Bool = { topics in
      topics.count >= limit || topics.last.map { !$0.topic.utf8.starts(with: prefix.utf8) } ?? false
    }
    let completion: Completion<[TopicSummary]> = { result in
      completion(
        result.map { topics in
          Array(topics.filter { $0.topic.utf8.starts(with: prefix.utf8) }.prefix(limit))
        })
    }
    pages(until: isEnough, { (page: Topics) in (page.topics, page.more) }, completion) {
      TopicList(after: $0?.topic ?? prefix.justBefore, limit: page)
    }
  }

  /// A topic's settings and state, and the clients attached to it.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  public func topicInfo(_ name: String) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { topicInfo(name, completion: $0) }
  }

  public func topicInfo(_ name: String, completion: @escaping Completion<TopicInfo>) {
    ask(TopicShow(topic: name), completion)
  }

  /// Creates a topic with these settings; the broker's defaults replace those that are nil. An existing topic with the same settings
  /// stays as it is.
  ///
  /// - Throws: ``ClientError/Code/topicExists`` if it has other settings; ``ClientError/Code/invalidSetting``,
  ///   ``ClientError/Code/invalidTopic``; ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  @discardableResult
  public func createTopic(
    _ name: String, settings: TopicSettings = TopicSettings()
  ) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { createTopic(name, settings: settings, completion: $0) }
  }

  public func createTopic(
    _ name: String, settings: TopicSettings = TopicSettings(),
    completion: @escaping Completion<TopicInfo>
  ) {
    ask(TopicCreate(topic: name, settings: settings), completion)
  }

  /// Deletes a topic and its records. Its subscribers and producers end with ``ClientError/Code/topicDeleted``.
  ///
  /// - Throws: ``ClientError/Code/unknownTopic``; ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  public func deleteTopic(_ name: String) async throws(ClientError) {
    try await Reply.wait { deleteTopic(name, completion: $0) }
  }

  public func deleteTopic(_ name: String, completion: @escaping Completion<Void>) {
    ask(TopicDelete(topic: name), completion)
  }

  /// Changes settings of a topic that exists; those that are nil stay as they are. Its producers and subscribers stay attached.
  ///
  /// These settings can be changed:
  /// - retention limits, which apply at once
  /// - flow and buffer
  /// - the behaviour of producers without subscribers, and after producers are lost
  /// - when the topic connects
  /// - lag and automatic deletion
  ///
  /// - Parameters:
  ///   - name: the topic's name.
  ///   - changes: the new values.
  /// - Returns: the topic with all its settings, which for a durable topic are on disk.
  /// - Throws: ``ClientError/Code/invalidSetting`` for scope, compact, storage and sync, which can't be changed; ``ClientError/Code/unknownTopic``;
  ///   ``ClientError/Code/permissionDenied``; ``ClientError/Code/requestTimeout``; why the client was closed; ``ClientError/Code/cancelled``.
  @discardableResult
  public func setTopic(_ name: String, to changes: TopicSettings) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { setTopic(name, to: changes, completion: $0) }
  }

  public func setTopic(
    _ name: String, to changes: TopicSettings, completion: @escaping Completion<TopicInfo>
  ) {
    ask(TopicSet(topic: name, settings: changes), completion)
  }

  /// Drops a topic's oldest records. Offsets stay as they are.
  ///
  /// Subscribers that have yet to get these records skip them or fail, as when the topic's limits drop records. In a lossless topic, records that an attached
  /// subscriber or a group has yet to get stay until it has them; later subscribers don't get them.
  ///
  /// - Parameters:
  ///   - name: the topic's name.
  ///   - offset: the offset of the first record to keep.
  /// - Returns: the topic with the remaining records. For a durable topic the change is on disk.
  /// - Throws: ``ClientError/Code/invalidSetting`` when the topic ends before the offset; ``ClientError/Code/unknownTopic``;
  ///   ``ClientError/Code/permissionDenied``; ``ClientError/Code/requestTimeout``; why the client was closed; ``ClientError/Code/cancelled``.
  @discardableResult
  public func trimTopic(_ name: String, before offset: UInt64) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { trimTopic(name, before: offset, completion: $0) }
  }

  public func trimTopic(_ name: String, before offset: UInt64, completion: @escaping Completion<TopicInfo>) {
    ask(TopicTrim(topic: name, .from(offset)), completion)
  }

  /// Drops all of a topic's records except the newest `count`; 0 drops all of them. Otherwise as ``trimTopic(_:before:)``.
  ///
  /// - Parameters:
  ///   - name: the topic's name.
  ///   - count: how many of the newest records to keep.
  /// - Returns: as ``trimTopic(_:before:)``.
  /// - Throws: as ``trimTopic(_:before:)``.
  @discardableResult
  public func trimTopic(_ name: String, keepingLast count: UInt64) async throws(ClientError) -> TopicInfo {
    try await Reply.wait { trimTopic(name, keepingLast: count, completion: $0) }
  }

  public func trimTopic(
    _ name: String, keepingLast count: UInt64, completion: @escaping Completion<TopicInfo>
  ) {
    ask(TopicTrim(topic: name, .newest(count)), completion)
  }

  /// Connects a topic whose setting `connect` is manual, so that the broker grants its producers records.
  ///
  /// It stays connected until ``disconnectTopic(_:)``, independently of its producers and subscribers.
  ///
  /// - Throws: ``ClientError/Code/unsupported`` if the topic connects by itself; why the connection was closed; ``ClientError/Code/cancelled``.
  public func connectTopic(_ name: String) async throws(ClientError) {
    try await Reply.wait { connectTopic(name, completion: $0) }
  }

  public func connectTopic(_ name: String, completion: @escaping Completion<Void>) {
    ask(TopicConnect(topic: name), completion)
  }

  /// Disconnects a topic, see ``connectTopic(_:)``. Subscribers aren't notified.
  ///
  /// - Throws: as ``connectTopic(_:)``.
  public func disconnectTopic(_ name: String) async throws(ClientError) {
    try await Reply.wait { disconnectTopic(name, completion: $0) }
  }

  public func disconnectTopic(_ name: String, completion: @escaping Completion<Void>) {
    ask(TopicDisconnect(topic: name), completion)
  }

  /// The round-trip time to the broker.
  ///
  /// - Throws: ``ClientError/Code/requestTimeout``; why the client was closed;
  ///   ``ClientError/Code/cancelled``.
  public func ping() async throws(ClientError) -> Duration {
    try await Reply.wait { ping(completion: $0) }
  }

  public func ping(completion: @escaping Completion<Duration>) {
    ask(nil, completion)
  }

  // MARK: Sending

  static var pageSize: UInt32 { 1_000 }

  /// Requests page by page. Elements that are created or deleted meanwhile may be included or not.
  ///
  /// - Parameters:
  ///   - elements: the elements of earlier pages.
  ///   - isEnough: whether no further page is needed.
  ///   - contents: the elements of a page, and whether more follow.
  ///   - request: requests the page after an element, or the first page.
  func pages<Page: Frame, Element: Sendable>(
    behind elements: [Element] = [], until isEnough: @escaping @Sendable ([Element]) -> Bool = { _ in false },
    _ contents: @escaping @Sendable (Page) -> ([Element], more: Bool),
    _ completion: @escaping Completion<[Element]>, _ request: @escaping @Sendable (Element?) -> any Frame
  ) {
    ask(request(elements.last)) { [weak self] (result: Result<Page, ClientError>) in
      switch result {
      case .failure(let error): completion(.failure(error))
      case .success(let page):
        let (next, isMore) = contents(page)
        let all = elements + next
        guard isMore, !next.isEmpty, !isEnough(all) else { return completion(.success(all)) }
        guard let self else { return completion(.failure(.closedHere)) }
        pages(behind: all, until: isEnough, contents, completion, request)
      }
    }
  }

  /// Sends a request that is only confirmed.
  func ask(_ frame: any Frame, _ completion: @escaping Completion<Void>) {
    ask(frame) { (result: Result<Done, ClientError>) in completion(result.map { _ in }) }
  }

  /// Sends a request, or PING if there is no frame.
  func ask<Answer: Sendable>(_ frame: (any Frame)?, _ completion: @escaping Completion<Answer>) {
    core.post(.open(.request(Request(frame, timeout: core.options.requestTimeout, completion))))
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
