import ReactiveCore
import SluiceIO
import SluiceWire
import Synchronization

/// A client's requests to topics that await replies. They share one inbox, which the first request subscribes to.
// @unchecked: `last` is atomic; the other variables are used on the client's loop only.
final class Requester: @unchecked Sendable {
  typealias Completion = @Sendable (Result<TopicRecord, ClientError>) -> Void

  private struct Pending: Sendable {
    var topic: String
    var completion: Completion
    var timer: TimerToken
  }

  private struct Inbox {
    var topic: String
    var subscription: AnyCancellable
  }

  private let core: ClientCore
  private let last = Atomic<UInt64>(0)

  private var inbox: Inbox?
  private var pending: [UInt64: Pending] = [:]
  private var requests = SubjectCache { $0.requestSubject($1) }
  private var replies = SubjectCache { $0.subject($1) }

  init(_ core: ClientCore) {
    self.core = core
  }

  /// Fails the pending requests: the client was released.
  deinit {
    guard !pending.isEmpty else { return }
    let (loop, left) = (core.loop, Array(pending.values))
    loop.execute {
      for request in left {
        loop.cancel(request.timer)
        request.completion(.failure(.closedHere))
      }
    }
  }

  // MARK: From any thread

  /// Publishes a request; calls `completion` with the reply, on the loop, once.
  ///
  /// - Returns: its number, to cancel it with.
  func send(
    _ message: Message, to topic: String, timeout: Duration, with client: Client,
    _ completion: @escaping Completion
  ) -> UInt64 {
    let number = last.add(1, ordering: .relaxed).newValue
    core.loop.execute { [self] in begin(number, message, topic, timeout, client, completion) }
    return number
  }

  /// Stops waiting for a reply.
  func cancel(_ number: UInt64, _ error: ClientError) {
    core.loop.execute { [self] in complete(number, .failure(error)) }
  }

  /// Publishes a reply.
  func reply(_ message: Message, to topic: String, with client: Client) {
    core.loop.execute { [self] in replies.use(topic, of: client).send(message) }
  }

  // MARK: On the loop

  private func begin(
    _ number: UInt64, _ message: Message, _ topic: String, _ timeout: Duration, _ client: Client,
    _ completion: @escaping Completion
  ) {
    let timer = core.loop.schedule(after: timeout) { [weak self] in
      self?.complete(
        number,
        .failure(
          ClientError(
            .requestTimeout,
            "no reply came within \(timeout); does a subscriber of topic \(topic) reply to requests?",
            topic: topic)))
    }
    pending[number] = Pending(topic: topic, completion: completion, timer: timer)
    // The inbox is subscribed to before any request is published.
    let inbox = self.inbox ?? openInbox(with: client)
    self.inbox = inbox
    var message = message
    message.headers.append(Message.Header(RequestHeader.replyTo, inbox.topic))
    message.headers.append(Message.Header(RequestHeader.correlation, String(number, radix: 16)))
    requests.use(topic, of: client).publish(message) { [weak self] result in
      // Called on the calling thread, which is the loop's, or later on the loop.
      if case .failure(let error) = result { self?.complete(number, .failure(error)) }
    }
  }

  private func openInbox(with client: Client) -> Inbox {
    let topic = core.makeInboxName()
    let subscription = client.topic(topic, from: .new, lag: .skip).sink { [weak self] completion in
      self?.inboxEnded(completion)
    } receiveValue: { [weak self] record in
      self?.replied(record)
    }
    return Inbox(topic: topic, subscription: subscription)
  }

  private func replied(_ record: TopicRecord) {
    guard let text = record.header(RequestHeader.correlation), let number = UInt64(text, radix: 16) else {
      return
    }
    guard let failure = record.header(RequestHeader.failure) else {
      return complete(number, .success(record))
    }
    let error = ClientError(
      .replyFailed, "the request couldn't be answered: \(failure)", topic: pending[number]?.topic)
    complete(number, .failure(error))
  }

  /// Fails the pending requests: without the inbox no reply can come. The next request opens another one.
  private func inboxEnded(_ completion: Subscribers.Completion<ClientError>) {
    let error: ClientError =
      switch completion {
      case .failure(let error): error
      case .finished: ClientError(.topicEnded, "another client has ended the inbox for replies")
      }
    inbox = nil
    for number in pending.keys.sorted() { complete(number, .failure(error)) }
  }

  private func complete(_ number: UInt64, _ result: Result<TopicRecord, ClientError>) {
    guard let request = pending.removeValue(forKey: number) else { return }
    core.loop.cancel(request.timer)
    request.completion(result)
  }
}

/// The most recently used subjects of topics to which requests or replies are published. Each keeps a publication open.
struct SubjectCache {
  private struct Entry {
    var subject: TopicSubject
    var lastUse: UInt64
  }

  /// Subjects kept at a time.
  private let limit: Int
  private var entries: [String: Entry] = [:]
  private var uses: UInt64 = 0
  private let make: (Client, String) -> TopicSubject

  /// - Parameter make: makes the subject of a topic.
  init(limit: Int = 64, make: @escaping (Client, String) -> TopicSubject) {
    self.limit = limit
    self.make = make
  }

  /// Returns the topic's subject. Replaces one that has ended, and evicts the least recently used one above the limit, which still publishes its
  /// records.
  mutating func use(_ topic: String, of client: Client) -> TopicSubject {
    uses += 1
    if let entry = entries[topic], entry.subject.publication.isActive {
      entries[topic]?.lastUse = uses
      return entry.subject
    }
    let subject = make(client, topic)
    entries[topic] = Entry(subject: subject, lastUse: uses)
    if entries.count > limit, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
      entries[oldest.key] = nil
    }
    return subject
  }
}

/// The headers that relate a reply to its request, with the names of other messaging systems.
enum RequestHeader {
  /// On a request: the topic for its reply.
  static let replyTo = "reply-to"
  /// On both: the request's id.
  static let correlation = "correlation-id"
  /// On a reply: why the request couldn't be answered.
  static let failure = "reply-error"
}

extension TopicRecord {
  /// The text of the first header of that name.
  func header(_ name: String) -> String? {
    headers.first { $0.name == name }?.string
  }
}
