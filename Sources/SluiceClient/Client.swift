import ReactiveCore
import SluiceIO
import SluiceWire

/// A connection to a broker, for any number of subscriptions, publications and requests.
///
/// ```swift
/// let client = try await Client.connect(to: "127.0.0.1:7420")
/// let subject = client.subject("greetings")
/// try await subject.publish("hello")
/// let cancellable = client.topic("greetings").sink { print($0) } receiveValue: { print($0.string) }
/// ```
///
/// Everything that a client does happens on one event loop: a thread that the library shares between all clients, unless another is
/// given. Subscribers are called there.
///
/// When the connection is lost, the client makes another, as ``ClientOptions/reconnect`` says: subscriptions go on with the record behind
/// the last one that they got, publications with the first that wasn't acknowledged, and both notice nothing but a pause. See
/// ``connectionState``.
///
/// **A topic or a subject doesn't keep its client: hold the client for as long as they are used.** When the client is released, as with ``close()``,
/// the connection is closed, and everything on it ends with ``ClientError/Code/closed``. A subscription to a topic whose client was released fails with that
/// code at once, and its message says so.
public final class Client: Sendable {
  let core: ClientCore
  let requester: Requester

  /// Made when there is a connection.
  init(_ core: ClientCore) {
    self.core = core
    requester = Requester(core)
  }

  deinit {
    core.post(.close(.clientReleased))
  }

  // MARK: Connecting

  /// Connects to a broker, on the machine's network and the library's own loop.
  ///
  /// - Parameters:
  ///   - address: `HOST:PORT`, `[V6]:PORT`, either of them behind `tls://`, or `unix:PATH`. See ``ClientOptions/tls``.
  ///   - options: how to connect, and how to be on a connection.
  /// - Throws: one of the codes for connections; ``ClientError/Code/cancelled`` when the task is cancelled.
  public static func connect(
    to address: String, options: ClientOptions = ClientOptions()
  ) async throws(ClientError) -> Client {
    try await connect(to: [address], options: options)
  }

  /// Connects to one of several servers, on the machine's network and the library's own loop: to the first that answers, in their order. After
  /// a lost connection the next one is tried first; see ``ReconnectPolicy``.
  ///
  /// - Parameters:
  ///   - addresses: at least one, each as in ``connect(to:options:)-(String,_)``.
  ///   - options: how to connect, and how to be on a connection.
  /// - Throws: one of the codes for connections; ``ClientError/Code/cancelled`` when the task is cancelled.
  public static func connect(
    to addresses: [String], options: ClientOptions = ClientOptions()
  ) async throws(ClientError) -> Client {
    var targets: [SocketAddress] = []
    for address in addresses {
      do throws(SocketAddressError) {
        targets.append(try SocketAddress(parsing: address))
      } catch {
        throw ClientError(.invalidAddress, "\(error)")
      }
    }
    guard !targets.isEmpty else { throw ClientError(.invalidAddress, "there is no address to connect to") }
    let loop: EpollLoop
    do {
      loop = try SharedLoop.loop.get()
    } catch {
      throw ClientError(.connectFailed, "the client's event loop can't be made: \(error)")
    }
    return try await connect(to: targets, options: options, network: SharedLoop.network, loop: loop)
  }

  /// Connects to a broker on somebody's network and loop, which may be shared, or simulated: to one of several servers. From any thread.
  ///
  /// The loop must run for as long as the client is used.
  ///
  /// - Parameters:
  ///   - servers: at least one; tried in this order.
  ///   - options: how to connect, and how to be on a connection.
  ///   - network: how to reach them.
  ///   - loop: where everything of the client happens.
  /// - Throws: one of the codes for connections; ``ClientError/Code/cancelled`` when the task is cancelled.
  public static func connect(
    to servers: [SocketAddress], options: ClientOptions = ClientOptions(), network: any Network,
    loop: any EventLoop
  ) async throws(ClientError) -> Client {
    let reply = Reply<Client>()
    let core = ClientCore(servers: servers, options: options, network: network, loop: loop)
    connect(core, reply.complete)
    return try await reply.value(onCancel: { core.post(.close(.waitCancelled)) })
  }

  /// Connects to a broker on somebody's network and loop. From any thread.
  ///
  /// - Parameters:
  ///   - servers: at least one; tried in this order.
  ///   - options: how to connect, and how to be on a connection.
  ///   - network: how to reach them.
  ///   - loop: where everything of the client happens.
  ///   - completion: called on the loop, once.
  public static func connect(
    to servers: [SocketAddress], options: ClientOptions = ClientOptions(), network: any Network,
    loop: any EventLoop, completion: @escaping @Sendable (Result<Client, ClientError>) -> Void
  ) {
    connect(ClientCore(servers: servers, options: options, network: network, loop: loop), completion)
  }

  /// The same with one server.
  public static func connect(
    to address: SocketAddress, options: ClientOptions = ClientOptions(), network: any Network,
    loop: any EventLoop
  ) async throws(ClientError) -> Client {
    try await connect(to: [address], options: options, network: network, loop: loop)
  }

  /// The same with one server.
  public static func connect(
    to address: SocketAddress, options: ClientOptions = ClientOptions(), network: any Network,
    loop: any EventLoop, completion: @escaping @Sendable (Result<Client, ClientError>) -> Void
  ) {
    connect(to: [address], options: options, network: network, loop: loop, completion: completion)
  }

  private static func connect(
    _ core: ClientCore, _ completion: @escaping @Sendable (Result<Client, ClientError>) -> Void
  ) {
    core.connect { [core] result in completion(result.map { Client(core) }) }
  }

  /// What the broker said of itself, when the present connection or the last one was made.
  public var broker: BrokerDescription {
    guard let broker = core.description else { preconditionFailure("a client has had a connection") }
    return broker
  }

  /// Who the broker takes the client for, by the credentials of the present connection or the last one; nil where it doesn't ask.
  public var identity: ClientIdentity? { core.identity }

  /// Closes the connection. What was published is given to the transport as far as that takes it; use ``TopicSubject/flush()`` before to be sure.
  /// Subscribers, and whoever waits for an answer, are told ``ClientError/Code/closed``.
  ///
  /// From any thread; returns at once. Calling it again does nothing.
  public func close() {
    core.post(.close(.closedHere))
  }

  /// Why the client is over; nil while it has a connection, or tries to get one.
  public var failure: ClientError? { core.failure }

  // MARK: Topics

  /// A topic to subscribe to. Nothing is sent before somebody subscribes; a topic that doesn't exist is created then.
  ///
  /// ```swift
  /// let ticks = client.topic("ticks", as: .shared(replay: 2))
  /// ```
  ///
  /// - Parameters:
  ///   - name: tokens separated by dots: `orders.eu.new`. What is wrong with it is told to the subscriber.
  ///   - settings: what is stated of the topic; nil for nothing. A topic that doesn't exist is created with these settings; one that was created
  ///     without a statement and has had no record gets them. If the topic has others that stand, the subscription ends with
  ///     ``ClientError/Code/topicExists``, and the message names the difference. See <doc:SharingTopics>.
  ///   - start: where subscriptions begin.
  ///   - filter: which records are wanted; the broker sends no others.
  ///   - cursor: the durable cursor that keeps the place, across clients; nil for none.
  ///   - lag: what happens when records are dropped that the subscriber hasn't asked for yet; nil for what the topic's settings say, and
  ///     for ``SubscriptionPlan/Lag/skip`` when the topic was started anew during an outage.
  ///   - prefetch: how far the client asks ahead.
  public func topic(
    _ name: String, as settings: TopicSettings? = nil, from start: SubscriptionPlan.Start = .replay,
    where filter: RecordFilter = .all, cursor: SubscriptionPlan.Cursor? = nil,
    lag: SubscriptionPlan.Lag? = nil, prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<TopicRecord> {
    topic(
      SubscriptionPlan(
        name, as: settings, from: start, where: filter, cursor: cursor, lag: lag, prefetch: prefetch))
  }

  /// All topics whose names match a pattern, those created later included, to be subscribed to as one, with one demand.
  ///
  /// ```swift
  /// let orders = client.topics(matching: "orders.*").sink { completion in
  ///   print(completion)
  /// } receiveValue: { record in
  ///   print(record.topic, record.string)
  /// }
  /// ```
  ///
  /// - Order: the records of each topic come in the order of their offsets; between topics there is no order. Topics with records take
  ///   turns: none waits for ever because others have many.
  /// - The end: topics end, or are deleted, one by one, and the subscription goes on; ``RemoteTopic/events`` tells of that, and of
  ///   topics that are created. Those are received from their first record on.
  /// - A lost connection is a pause, as for one topic: see ``RemoteTopic``.
  ///
  /// - Parameters:
  ///   - pattern: `*` is any one token, a last `>` one or more: `orders.*`, `orders.>`. What is wrong with it is told to the subscriber. A
  ///     wildcard that comes first doesn't match names that start with `$` or `_inbox.`.
  ///   - start: where to begin in the topics that are there when the subscription begins.
  ///   - lag: as in ``topic(_:as:from:where:cursor:lag:prefetch:)``, for each topic. With ``SubscriptionPlan/Lag/fail`` one that lags ends the subscription.
  ///   - prefetch: how far the client asks ahead, for all topics together.
  public func topics(
    matching pattern: String, from start: SubscriptionPlan.Start = .replay, lag: SubscriptionPlan.Lag? = nil,
    prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<TopicRecord> {
    var plan = SubscriptionPlan(pattern, from: start, lag: lag, prefetch: prefetch)
    plan.isPattern = true
    return topic(plan)
  }

  /// A topic to subscribe to with all that a plan says. Nothing is sent before somebody subscribes.
  public func topic(_ plan: SubscriptionPlan) -> RemoteTopic<TopicRecord> {
    RemoteTopic(plan, core)
  }

  /// A topic of values that a decoder makes of the records' payloads. `SluiceClientFoundation` has the same for JSON, without a
  /// decoder.
  ///
  /// Short for ``RemoteTopic/decoded(as:decoder:decodeFailure:)`` of ``topic(_:as:from:where:cursor:lag:prefetch:)``.
  public func topic<Value: Decodable & SendableMetatype, Coder: TopLevelDecoder & Sendable>(
    _ name: String, of type: Value.Type, as settings: TopicSettings? = nil, decoder: Coder,
    decodeFailure: DecodeFailure = .fail, from start: SubscriptionPlan.Start = .replay,
    lag: SubscriptionPlan.Lag? = nil,
    prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<Value> where Coder.Input == [UInt8] {
    topic(name, as: settings, from: start, lag: lag, prefetch: prefetch)
      .decoded(as: type, decoder: decoder, decodeFailure: decodeFailure)
  }

  /// A topic to publish to. The publication is opened at once; a topic that doesn't exist is created.
  ///
  /// - Parameters:
  ///   - name: tokens separated by dots: `orders.eu.new`. What is wrong with it is told to the producer.
  ///   - settings: what is stated of the topic, as in ``topic(_:as:from:where:cursor:lag:prefetch:)``; the publication ends with the error.
  ///   - acknowledgement: when the broker acknowledges a record.
  ///   - buffer: how much may wait for the broker's grant.
  ///   - whenFull: what ``TopicSubject/send(_:)`` does when as much waits.
  ///   - producer: who publishes, if it is to be known again after the process has been started anew. Otherwise it has a number by
  ///     chance, which does for lost connections.
  public func subject(
    _ name: String, as settings: TopicSettings? = nil,
    acknowledgement: TopicSubject.Acknowledgement = .received,
    buffer: TopicSubject.Buffer = TopicSubject.Buffer(), whenFull: TopicSubject.WhenFull = .fail,
    producer: TopicSubject.Producer? = nil
  ) -> TopicSubject {
    TopicSubject(
      Publication(
        topic: name, acknowledgement: PublishOpen.Acknowledgement(acknowledgement),
        maximumRecord: broker.maximumRecord, buffer: buffer, whenFull: whenFull, producer: producer,
        settings: settings ?? TopicSettings(), core: core))
  }

  /// A topic to publish requests to: a record that no subscriber can reply to is refused, and ends the subject with ``ClientError/Code/noResponders``. The topic
  /// isn't created.
  func requestSubject(_ name: String) -> TopicSubject {
    TopicSubject(
      Publication(
        topic: name, acknowledgement: .received, maximumRecord: broker.maximumRecord,
        buffer: TopicSubject.Buffer(), whenFull: .fail, isRequester: true, core: core))
  }
}

/// What a broker says of itself, and what was agreed on with it.
public struct BrokerDescription: Hashable, Sendable {
  /// Its software and version.
  public let software: String
  /// Its identity, new with each start.
  public let identity: UInt64
  /// The longest record that it takes, in bytes of payload, key and headers.
  public let maximumRecord: Int
  /// The longest frame that it takes, in bytes.
  public let maximumFrame: Int
  /// Subscriptions, publications and requests under way that one connection can have.
  public let maximumStreams: Int
  /// The silence after which either side gives the other up; nil for never.
  public let keepalive: Duration?

  init(_ welcome: Welcome) {
    software = welcome.software
    identity = welcome.broker
    maximumRecord = Int(welcome.maximumRecord)
    maximumFrame = Int(welcome.maximumFrame)
    maximumStreams = Int(welcome.maximumStreams)
    keepalive = welcome.keepalive == 0 ? nil : .milliseconds(Int(welcome.keepalive))
  }
}

/// The loop and the network of clients that were given none: one thread for all of them, started with the first and kept
/// for the rest of the program's life.
enum SharedLoop {
  static let network = SocketNetwork()

  /// The loop, or why the system gave none.
  static let loop: Result<EpollLoop, IOError> = {
    do throws(IOError) {
      return .success(try EpollLoop.start(name: "sluice-client"))
    } catch {
      return .failure(error)
    }
  }()
}
