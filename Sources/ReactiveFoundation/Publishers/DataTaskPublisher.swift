public import Foundation
public import ReactiveCore

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

extension URLSession {
  /// A publisher that loads what is at a URL.
  public func dataTaskPublisher(for url: URL) -> DataTaskPublisher {
    dataTaskPublisher(for: URLRequest(url: url))
  }

  /// A publisher that sends a request and delivers the response.
  public func dataTaskPublisher(for request: URLRequest) -> DataTaskPublisher {
    DataTaskPublisher(request: request, session: self)
  }

  /// Sends a request and delivers the whole response with its body, then finishes.
  ///
  /// Nothing is sent before the subscriber asks. Each subscription sends the request anew. Cancelling
  /// cancels the task, and nothing more is delivered. Delivery is on the session's delegate queue. A
  /// response is a value whatever its status code; only what kept the response from coming is a failure.
  public struct DataTaskPublisher: Publisher, Sendable {
    public typealias Output = (data: Data, response: URLResponse)
    public typealias Failure = URLError

    /// The request to send.
    public let request: URLRequest
    /// The session whose tasks send it.
    public let session: URLSession

    /// A publisher that sends a request and delivers the response.
    public init(request: URLRequest, session: URLSession) {
      self.request = request
      self.session = session
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      subscriber.receive(subscription: DataTaskSubscription(self, downstream: AnySubscriber(subscriber)))
    }
  }
}

/// One task, made when the subscriber asks.
private final class DataTaskSubscription: Subscription, OperatorPart, @unchecked Sendable {
  // Sendable because the lock guards all fields, and the thread that takes the subscriber out delivers to it.

  typealias Downstream = AnySubscriber<(data: Data, response: URLResponse), URLError>

  private let lock = Lock()
  // Guarded by the lock.
  private var parent: URLSession.DataTaskPublisher?
  private var downstream: Downstream?
  private var task: URLSessionDataTask?
  private var demand = Subscribers.Demand.none

  init(_ parent: URLSession.DataTaskPublisher, downstream: Downstream) {
    self.parent = parent
    self.downstream = downstream
  }

  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    let parent: URLSession.DataTaskPublisher? = lock.withLock {
      defer { self.demand += demand }
      return self.demand == .none ? self.parent : nil
    }
    guard let parent else { return }
    let task = parent.session.dataTask(with: parent.request) { [self] data, response, error in
      receive(data, response, error)
    }
    let isOpen = lock.withLock {
      if downstream != nil { self.task = task }
      return downstream != nil
    }
    // A task that was never resumed keeps its session busy until it is cancelled.
    if isOpen { task.resume() } else { task.cancel() }
  }

  private func receive(_ data: Data?, _ response: URLResponse?, _ error: (any Error)?) {
    guard let (downstream, _) = take() else { return }
    if let response, error == nil {
      _ = downstream.receive((data ?? Data(), response))
      downstream.receive(completion: .finished)
    } else {
      downstream.receive(completion: .failure(error as? URLError ?? URLError(.unknown)))
    }
  }

  func cancel() { take()?.task?.cancel() }

  private func take() -> (downstream: Downstream, task: URLSessionDataTask?)? {
    let (downstream, task, parent) = lock.withLock {
      demand = .none
      return (self.downstream.take(), self.task.take(), self.parent.take())
    }
    withExtendedLifetime(parent) {}
    return downstream.map { ($0, task) }
  }

  var description: String { "DataTaskPublisher" }

  var customMirror: Mirror {
    let (task, downstream, parent, demand) = lock.withLock {
      (self.task, self.downstream, self.parent, self.demand)
    }
    return mirror(
      ("task", task as Any), ("downstream", downstream as Any), ("parent", parent as Any), ("demand", demand))
  }
}
