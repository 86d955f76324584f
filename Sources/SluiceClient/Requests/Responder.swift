import ReactiveCore

extension Client {
  /// Replies to the requests that are published to a topic after this call.
  ///
  /// ```swift
  /// let service = client.respond(to: "prices.quote") { request in
  ///   Message(try await quote(of: request.string))
  /// }
  /// ```
  ///
  /// Each request is handled in its own task, in no particular order. If the handler throws, the requesting client gets ``ClientError/Code/replyFailed`` with
  /// the failure of ``TopicFailure/init(describing:)``: throw a ``TopicFailure`` to choose the message. Records without the headers of a request are handled
  /// as well, and their replies dropped.
  ///
  /// - Parameters:
  ///   - topic: where the requests are published.
  ///   - concurrent: how many requests are handled at a time, which is also the demand. At least 1.
  ///   - completion: called once, on the client's loop, when the topic has ended or the client is closed.
  ///   - handler: makes the reply.
  /// - Returns: ends the subscription, and cancels the running tasks, when it is cancelled or released.
  public func respond(
    to topic: String, concurrent: Int = 64,
    completion: @escaping @Sendable (Subscribers.Completion<ClientError>) -> Void = { _ in },
    with handler: @escaping @Sendable (TopicRecord) async throws -> Message
  ) -> AnyCancellable {
    respond(
      to: SubscriptionPlan(topic, from: .new), concurrent: concurrent, completion: completion, with: handler)
  }

  /// As the other form, for the records of a plan's subscription.
  public func respond(
    to plan: SubscriptionPlan, concurrent: Int = 64,
    completion: @escaping @Sendable (Subscribers.Completion<ClientError>) -> Void = { _ in },
    with handler: @escaping @Sendable (TopicRecord) async throws -> Message
  ) -> AnyCancellable {
    let responder = Responder(self, concurrent: max(concurrent, 1), handler, completion)
    topic(plan).subscribe(responder)
    return AnyCancellable { responder.cancel() }
  }
}

/// A subscriber that requests another record for each reply.
// @unchecked: `state` is guarded by `lock`; the rest is constant.
final class Responder: Subscriber, @unchecked Sendable {
  typealias Input = TopicRecord
  typealias Failure = ClientError

  private struct State {
    var subscription: (any Subscription)?
    var tasks: [UInt64: Task<Void, Never>] = [:]
    /// Tasks that ended before they were entered in `tasks`.
    var early: Set<UInt64> = []
    var last: UInt64 = 0
    var isCancelled = false
  }

  private weak let client: Client?
  private let requester: Requester
  private let concurrent: Int
  private let handler: @Sendable (TopicRecord) async throws -> Message
  private let completion: @Sendable (Subscribers.Completion<ClientError>) -> Void
  private let lock = Lock()
  private var state = State()

  init(
    _ client: Client, concurrent: Int, _ handler: @escaping @Sendable (TopicRecord) async throws -> Message,
    _ completion: @escaping @Sendable (Subscribers.Completion<ClientError>) -> Void
  ) {
    self.client = client
    requester = client.requester
    self.concurrent = concurrent
    self.handler = handler
    self.completion = completion
  }

  func receive(subscription: any Subscription) {
    let isCancelled = lock.withLock {
      if !state.isCancelled { state.subscription = subscription }
      return state.isCancelled
    }
    if isCancelled { subscription.cancel() } else { subscription.request(.max(concurrent)) }
  }

  func receive(_ request: TopicRecord) -> Subscribers.Demand {
    let number = lock.withLock {
      state.last += 1
      return state.last
    }
    let task = Task { [handler] in
      let answer: Result<Message, any Error>
      do {
        answer = .success(try await handler(request))
      } catch {
        answer = .failure(error)
      }
      finished(number, request, answer)
    }
    let isCancelled = lock.withLock {
      if state.early.remove(number) == nil { state.tasks[number] = task }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    return .none
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    lock.withLock { state.subscription = nil }
    self.completion(completion)
  }

  /// Ends the subscription and the tasks, without further replies. From any thread.
  func cancel() {
    let (subscription, tasks) = lock.withLock {
      state.isCancelled = true
      defer {
        state.subscription = nil
        state.tasks = [:]
      }
      return (state.subscription, state.tasks.values)
    }
    subscription?.cancel()
    for task in tasks { task.cancel() }
  }

  private func finished(_ number: UInt64, _ request: TopicRecord, _ answer: Result<Message, any Error>) {
    let subscription: (any Subscription)? = lock.withLock {
      if state.tasks.removeValue(forKey: number) == nil, !state.isCancelled { state.early.insert(number) }
      return state.subscription
    }
    guard let subscription else { return }
    reply(to: request, answer)
    subscription.request(.max(1))
  }

  private func reply(to request: TopicRecord, _ answer: Result<Message, any Error>) {
    guard let client, let topic = request.header(RequestHeader.replyTo) else { return }
    var message: Message
    switch answer {
    case .success(let reply): message = reply
    case .failure(let error):
      let failure = TopicFailure(describing: error)
      message = Message("", headers: [.init(RequestHeader.failure, failure.message)])
    }
    if let correlation = request.headers.first(where: { $0.name == RequestHeader.correlation }) {
      message.headers.append(correlation)
    }
    // The reply belongs to the request's trace, unless the handler has set another one.
    if let trace = request.trace, message.trace == nil { message.trace = trace }
    requester.reply(message, to: topic, with: client)
  }
}
