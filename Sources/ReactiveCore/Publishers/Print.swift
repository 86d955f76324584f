extension Publishers {
  /// Prints a line for everything that happens in a stream.
  public struct Print<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The text before a colon at the start of each line; if empty, the colon is omitted as well.
    public let prefix: String
    /// The upstream publisher.
    public let upstream: Upstream
    /// Where the lines go; nil for the standard output.
    public let stream: (any TextOutputStream)?

    /// Builds the publisher from its parts.
    public init(upstream: Upstream, prefix: String, to stream: (any TextOutputStream)? = nil) {
      self.upstream = upstream
      self.prefix = prefix
      self.stream = stream
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let printer = LinePrinter(prefix: prefix, stream: stream ?? StandardOutput())
      upstream.receive(subscriber: PrintSubscriber<Output, Failure, S>(printer, downstream: subscriber))
    }
  }
}

/// Prints all calls, including calls after the end of the stream, which are not passed on.
private final class PrintSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  private let printer: LinePrinter
  private let downstream: Downstream
  private let link: UpstreamLink<Downstream>

  init(_ printer: LinePrinter, downstream: Downstream) {
    self.printer = printer
    self.downstream = downstream
    link = UpstreamLink("Print", downstream: downstream, isReflecting: false, acceptsNone: true)
  }

  func receive(subscription: any Subscription) {
    printer.print("receive subscription: (\(subscription))")
    if link.connect(subscription) { downstream.receive(subscription: PrintSubscription(printer, link: link)) }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    printer.print("receive value: (\(input))")
    guard link.isOpen else { return .none }
    let more = downstream.receive(input)
    if more != .none { printer.print(request: more, " (synchronous)") }
    return more
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    switch completion {
    case .finished: printer.print("receive finished")
    case .failure(let error): printer.print("receive error: (\(error))")
    }
    if link.complete() { downstream.receive(completion: completion) }
  }

  var description: String { "Print" }
}

private final class PrintSubscription<Downstream>: Subscription, OperatorPart {
  private let printer: LinePrinter
  private let link: UpstreamLink<Downstream>

  init(_ printer: LinePrinter, link: UpstreamLink<Downstream>) {
    self.printer = printer
    self.link = link
  }

  func request(_ demand: Subscribers.Demand) {
    printer.print(request: demand)
    link.request(demand)
  }

  func cancel() {
    printer.print("receive cancel")
    link.cancel()
  }

  var description: String { "Print" }
}

/// Writes lines to a stream, one after another, each with one call.
///
/// No lock is held while the stream writes: a line that comes meanwhile, from another thread or from the
/// stream itself, is left to the caller that is writing.
private final class LinePrinter {
  private let prefix: String
  private var stream: any TextOutputStream  // belongs to the caller that writes
  private let lock = Lock()
  private var waiting: [String] = []  // guarded by the lock
  private var isWriting = false  // guarded by the lock

  init(prefix: String, stream: any TextOutputStream) {
    self.prefix = prefix.isEmpty ? "" : "\(prefix): "
    self.stream = stream
  }

  func print(request demand: Subscribers.Demand, _ remark: String = "") {
    if let count = demand.max {
      print("request max: (\(count))\(remark)")
    } else {
      print("request unlimited\(remark)")
    }
  }

  func print(_ text: String) {
    var lines = ["\(prefix)\(text)\n"]
    let isOurs = lock.withLock {
      guard isWriting else {
        isWriting = true
        return true
      }
      waiting += lines
      return false
    }
    guard isOurs else { return }
    while !lines.isEmpty {
      for line in lines { stream.write(line) }
      lines = []
      lock.withLock {
        swap(&lines, &waiting)
        isWriting = !lines.isEmpty
      }
    }
  }
}

private struct StandardOutput: TextOutputStream {
  func write(_ string: String) { Swift.print(string, terminator: "") }
}

extension Publisher {
  /// Prints a line for each event of the stream, on the thread of the event and before it is passed on.
  ///
  ///     receive subscription: (PassthroughSubject)
  ///     request unlimited
  ///     receive value: (1)
  ///     request max: (2) (synchronous)
  ///     receive finished
  ///
  /// Lines are written whole, one at a time for each subscriber. Calls after the end are printed as well, but unlike in
  /// Combine not passed on.
  ///
  /// - Parameters:
  ///   - prefix: What each line begins with, before a colon; if empty, there is no colon either.
  ///   - stream: Where the lines go; nil for the standard output.
  public func print(_ prefix: String = "", to stream: (any TextOutputStream)? = nil) -> Publishers.Print<Self>
  {
    Publishers.Print(upstream: self, prefix: prefix, to: stream)
  }
}
