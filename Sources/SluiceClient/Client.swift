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
/// A client does everything on one event loop: a thread that the library shares between all clients, unless the program provides
/// another. Subscribers are called there.
///
/// After a lost connection, the client reconnects according to ``ClientOptions/reconnect``: subscriptions continue behind the last received record,
/// publications with the first record that wasn't acknowledged. Subscribers and producers notice only a pause. See
/// ``connectionState``.
///
/// **A topic or a subject doesn't retain its client: hold the client for as long as they are used.** Releasing the client, as ``close()`` does, closes
/// the connection, and everything on it ends with ``ClientError/Code/closed``. A subscription to a topic whose client was released fails with that
/// code at once, and its message says so.
public final class Client: Sendable {
  /// Called once with a result, on the client's loop.
  public typealias Completion<Value> = @Sendable (Result<Value, ClientError>) -> Void

  let core: ClientCore
  let requester: Requester

  /// Called after the first connection.
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
  ///   - address: `HOST:PORT`, `[V6]:PORT`, either with the prefix `tls://`, or `unix:PATH`. See ``ClientOptions/tls``.
  ///   - options: the client's options.
  /// - Throws: one of the codes for connections; ``ClientError/Code/cancelled`` when the task is cancelled.
  public static func connect(
    to address: String, options: ClientOptions = ClientOptions()
  ) async throws(ClientError) -> Client {
    try await connect(to: [address], options: options)
  }

  /// Connects to the first of several servers that answers, in their order, on the machine's network and the library's own loop. After a
  /// lost connection the client tries the next server first; see ``ReconnectPolicy``.
  ///
  /// - Parameters:
  ///   - addresses: at least one, each as in ``connect(to:options:)-(String,_)``.
  ///   - options: the client's options.
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

  /// Connects to one of several servers on the given network and loop, which may be shared, or simulated. From any thread.
  ///
  /// The loop must run for as long as the client is used.
  ///
  /// - Parameters:
  ///   - servers: at least one; tried in this order.
  ///   - options: the client's options.
  ///   - network: connects to them.
  ///   - loop: where the client works and calls its subscribers.
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

  /// As the `async` form, with a completion. From any thread.
  ///
  /// - Parameters:
  ///   - servers: at least one; tried in this order.
  ///   - options: the client's options.
  ///   - network: connects to them.
  ///   - loop: where the client works and calls its subscribers.
  ///   - completion: called on the loop, once.
  public static func connect(
    to servers: [SocketAddress], options: ClientOptions = ClientOptions(), network: any Network,
    loop: any EventLoop, completion: @escaping Completion<Client>
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
    loop: any EventLoop, completion: @escaping Completion<Client>
  ) {
    connect(to: [address], options: options, network: network, loop: loop, completion: completion)
  }

  private static func connect(_ core: ClientCore, _ completion: @escaping Completion<Client>) {
    core.connect { [core] result in completion(result.map { Client(core) }) }
  }

  /// The broker's description of itself, from the current or last connection.
  public var broker: BrokerDescription {
    guard let broker = core.description else { preconditionFailure("a client has had a connection") }
    return broker
  }

  /// The identity that the broker has given the client, on the current or last connection; nil if the broker has no access control.
  public var identity: ClientIdentity? { core.identity }

  /// Closes the connection at once. Published records go to the transport as far as it takes them; ``shutdown(within:)`` waits until the broker has them.
  /// Subscriptions and unanswered requests end with ``ClientError/Code/closed``.
  ///
  /// From any thread; returns at once. Calling it again does nothing.
  public func close() {
    core.post(.close(.closedHere))
  }

  /// Why the client was closed; nil while it has a connection, or tries to connect.
  public var failure: ClientError? { core.failure }

  // MARK: Topics

  /// A topic to subscribe to. The first subscription sends the first frame, and creates the topic if it doesn't exist.
  ///
  /// ```swift
  /// let ticks = client.topic("ticks", settings: .shared(replay: 2))
  /// ```
  ///
  /// - Parameters:
  ///   - name: tokens separated by dots: `orders.eu.new`. The subscription to an invalid name fails with a description of the error.
  ///   - settings: the settings stated for the topic; nil for none. A topic that doesn't exist is created with these settings; they apply to one that
  ///     was created without a statement and has had no record. If the topic has other, fixed settings, the subscription ends with
  ///     ``ClientError/Code/topicExists``, and the message names the difference. See <doc:SharingTopics>.
  ///   - start: where subscriptions begin.
  ///   - filter: which records are wanted; the broker sends no others.
  ///   - cursor: the durable cursor that keeps the position, across clients; nil for none.
  ///   - lag: what happens when records are dropped before the subscriber requests them, or the topic is started anew during an outage; nil as
  ///     ``SubscriptionPlan/lag`` says.
  ///   - prefetch: how far the client requests ahead.
  public func topic(
    _ name: String, settings: TopicSettings? = nil, from start: SubscriptionPlan.Start = .replay,
    where filter: RecordFilter = .all, cursor: SubscriptionPlan.Cursor? = nil,
    lag: SubscriptionPlan.Lag? = nil, prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<TopicRecord> {
    topic(
      SubscriptionPlan(
        name, settings: settings, from: start, where: filter, cursor: cursor, lag: lag, prefetch: prefetch))
  }

  /// All topics whose names match a pattern, including those created later, to subscribe to as one, with one demand.
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
  ///   turns, so a topic with few records isn't delayed by one with many.
  /// - The end: topics end, or are deleted, one by one, and the subscription continues; ``RemoteTopic/events`` reports
  ///   that, and topics that are created. Those are received from their first record on.
  /// - A lost connection is a pause, as for one topic: see ``RemoteTopic``.
  ///
  /// - Parameters:
  ///   - pattern: `*` is any one token, a last `>` one or more: `orders.*`, `orders.>`. The subscription to an invalid pattern fails with a description of
  ///     the error. A
  ///     leading wildcard doesn't match names that start with `$` or `_inbox.`.
  ///   - start: where to begin in the topics that exist when the subscription begins.
  ///   - lag: as in ``topic(_:settings:from:where:cursor:lag:prefetch:)``, for each topic. With ``SubscriptionPlan/Lag/fail`` one that lags ends the subscription.
  ///   - prefetch: how far the client requests ahead, for all topics together.
  public func topics(
    matching pattern: String, from start: SubscriptionPlan.Start = .replay, lag: SubscriptionPlan.Lag? = nil,
    prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<TopicRecord> {
    var plan = SubscriptionPlan(pattern, from: start, lag: lag, prefetch: prefetch)
    plan.isPattern = true
    return topic(plan)
  }

  /// A topic to subscribe to by a plan. The first subscription sends the first frame.
  public func topic(_ plan: SubscriptionPlan) -> RemoteTopic<TopicRecord> {
    RemoteTopic(plan, core)
  }

  /// A topic of values that a decoder makes of the records' payloads. `SluiceClientFoundation` has a form for JSON, without a decoder.
  ///
  /// Short for ``RemoteTopic/decoded(as:decoder:decodeFailure:)`` of ``topic(_:settings:from:where:cursor:lag:prefetch:)``.
  public func topic<Value: Decodable & SendableMetatype, Coder: TopLevelDecoder & Sendable>(
    _ name: String, as type: Value.Type, settings: TopicSettings? = nil, decoder: Coder,
    decodeFailure: DecodeFailure = .fail, from start: SubscriptionPlan.Start = .replay,
    lag: SubscriptionPlan.Lag? = nil,
    prefetch: SubscriptionPlan.Prefetch = .byRequest
  ) -> RemoteTopic<Value> where Coder.Input == [UInt8] {
    topic(name, settings: settings, from: start, lag: lag, prefetch: prefetch)
      .decoded(as: type, decoder: decoder, decodeFailure: decodeFailure)
  }

  /// A topic to publish to. Opens the publication at once, and creates the topic if it doesn't exist.
  ///
  /// - Parameters:
  ///   - name: tokens separated by dots: `orders.eu.new`. The publication of an invalid name ends with the error.
  ///   - settings: the settings stated for the topic, as in ``topic(_:settings:from:where:cursor:lag:prefetch:)``; a conflict ends the publication.
  ///   - acknowledgement: when the broker acknowledges a record.
  ///   - buffer: how much may wait for the broker's grant.
  ///   - whenFull: what ``TopicSubject/send(_:)->_`` does when the buffer is full.
  ///   - producer: the producer's id, for deduplication across restarts of the process. Nil for a random one, which suffices for lost
  ///     connections.
  public func subject(
    _ name: String, settings: TopicSettings? = nil,
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

  /// A topic to publish requests to, which isn't created. A record that no subscriber can reply to ends the subject with ``ClientError/Code/noResponders``.
  func requestSubject(_ name: String) -> TopicSubject {
    TopicSubject(Publication(topic: name, maximumRecord: broker.maximumRecord, isRequester: true, core: core))
  }
}

/// A broker's description of itself, and the limits agreed on with it.
public struct BrokerDescription: Hashable, Sendable {
  /// Its software and version.
  public let software: String
  /// A number that is new with each start of the broker.
  public let identity: UInt64
  /// The longest record that it accepts, in bytes of payload, key and headers.
  public let maximumRecord: Int
  /// The longest frame that it accepts, in bytes.
  public let maximumFrame: Int
  /// The largest number of concurrent subscriptions, publications and requests on one connection.
  public let maximumStreams: Int
  /// The silence after which either side closes the connection; nil for never.
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

/// The loop and the network of clients for which the program provides none: one thread for all of them, from the first client to the
/// end of the process.
enum SharedLoop {
  static let network = SocketNetwork()

  /// The loop, or why the system can't make one.
  static let loop: Result<EpollLoop, IOError> = {
    do throws(IOError) {
      return .success(try EpollLoop.start(name: "sluice-client"))
    } catch {
      return .failure(error)
    }
  }()
}
