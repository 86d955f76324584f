#if os(macOS) || os(iOS) || os(tvOS) || os(watchOS) || os(visionOS)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

extension Publishers {
  /// Stops the process in the debugger when a function says so.
  public struct Breakpoint<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to stop at the subscription.
    public let receiveSubscription: ((any Subscription) -> Bool)?
    /// Returns whether to stop at a value.
    public let receiveOutput: ((Upstream.Output) -> Bool)?
    /// Returns whether to stop at the completion.
    public let receiveCompletion: ((Subscribers.Completion<Upstream.Failure>) -> Bool)?

    /// Builds the publisher from its parts.
    public init(
      upstream: Upstream, receiveSubscription: ((any Subscription) -> Bool)? = nil,
      receiveOutput: ((Upstream.Output) -> Bool)? = nil,
      receiveCompletion: ((Subscribers.Completion<Upstream.Failure>) -> Bool)? = nil
    ) {
      self.upstream = upstream
      self.receiveSubscription = receiveSubscription
      self.receiveOutput = receiveOutput
      self.receiveCompletion = receiveCompletion
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(subscriber: BreakpointSubscriber(self, downstream: subscriber))
    }
  }
}

/// Holds no state, so the subscription passes through untouched.
private struct BreakpointSubscriber<Upstream: Publisher, Downstream: Subscriber>: Subscriber, OperatorPart
where Downstream.Input == Upstream.Output, Downstream.Failure == Upstream.Failure {
  typealias Input = Upstream.Output
  typealias Failure = Upstream.Failure

  let breakpoint: Publishers.Breakpoint<Upstream>
  let downstream: Downstream
  let combineIdentifier = CombineIdentifier()

  init(_ breakpoint: Publishers.Breakpoint<Upstream>, downstream: Downstream) {
    self.breakpoint = breakpoint
    self.downstream = downstream
  }

  func receive(subscription: any Subscription) {
    stop(if: breakpoint.receiveSubscription?(subscription))
    downstream.receive(subscription: subscription)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    stop(if: breakpoint.receiveOutput?(input))
    return downstream.receive(input)
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    stop(if: breakpoint.receiveCompletion?(completion))
    downstream.receive(completion: completion)
  }

  private func stop(if condition: Bool?) {
    if condition == true { raise(SIGTRAP) }
  }

  var description: String { "Breakpoint" }
}

extension Publisher {
  /// Stops the process in the debugger, by the signal `SIGTRAP`, when a function returns true.
  ///
  /// Without a debugger the signal ends the process.
  ///
  /// - Parameters:
  ///   - receiveSubscription: Gets the subscription, before downstream does.
  ///   - receiveOutput: Gets each value, before downstream does.
  ///   - receiveCompletion: Gets the completion, before downstream does.
  public func breakpoint(
    receiveSubscription: ((any Subscription) -> Bool)? = nil, receiveOutput: ((Output) -> Bool)? = nil,
    receiveCompletion: ((Subscribers.Completion<Failure>) -> Bool)? = nil
  ) -> Publishers.Breakpoint<Self> {
    Publishers.Breakpoint(
      upstream: self, receiveSubscription: receiveSubscription, receiveOutput: receiveOutput,
      receiveCompletion: receiveCompletion)
  }

  /// Stops the process in the debugger, by the signal `SIGTRAP`, when this publisher fails.
  public func breakpointOnError() -> Publishers.Breakpoint<Self> {
    breakpoint(receiveCompletion: { completion in
      if case .failure = completion { true } else { false }
    })
  }
}
