import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import Synchronization

/// A program that uses the client library, in its own process: no other peer uses its loop.
final class LibraryPeer: Participant {
  let number: Int
  let plan: PeerPlan
  let loop: SimulatedLoop
  unowned let simulation: Simulation
  var random: SeededRandom
  var isDisturbed = false

  private(set) var client: Client?
  private var watch: AnyCancellable?
  /// Whether the client has reported a connection.
  private var isUp = false
  private var attempts = 0
  private var isConnecting = false
  private(set) var isGone = false
  private(set) var isSettling = false
  private var producers: [LibraryProducer] = []
  private var subscribers: [LibrarySubscriber] = []
  private var waiting: [(SubscriberPlan, Int)] = []
  private weak var last: Client?

  init(number: Int, plan: PeerPlan, loop: SimulatedLoop, simulation: Simulation) {
    self.number = number
    self.plan = plan
    self.loop = loop
    self.simulation = simulation
    random = SeededRandom(seed: simulation.scenario.seed &* 0x9e37_79b9 &+ UInt64(number))
  }

  var oracle: Oracle { simulation.oracle }
  var name: String { "peer \(number).\(attempts)" }
  var isConnected: Bool { client != nil && client?.failure == nil }
  var agreedKeepalive: Duration { .milliseconds(Int(min(plan.keepalive, simulation.scenario.keepalive))) }
  var connection: SimulatedConnection? { simulation.latestConnection(from: loop) }

  func note(_ what: @autoclosure () -> String) {
    oracle.chronicle.note(number, what())
  }

  // MARK: Connecting

  func connect() {
    guard client == nil, !isConnecting, !isGone, !simulation.isLeaving else { return }
    isConnecting = true
    attempts += 1
    isDisturbed = false
    var options = ClientOptions()
    options.name = name
    options.keepalive = .milliseconds(Int(plan.keepalive))
    options.maximumFrame = Int(plan.maximumFrame)
    options.connectTimeout = .seconds(2)
    options.reconnect = plan.persists ? policy : nil
    options.seed = random.next()
    // By its type, the completion may be called on any thread; here there is only one.
    let peer = Unsent(self)
    Client.connect(to: simulation.address, options: options, network: simulation.world.network, loop: loop) {
      peer.value?.connected($0)
    }
  }

  private var policy: ReconnectPolicy {
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(1)
    policy.maximumDelay = .milliseconds(200)
    return policy
  }

  /// Receives the library's connection states.
  private func hear(_ state: ConnectionState) {
    oracle.check(loop.isCurrent, number, "a state isn't told on the loop")
    switch state {
    case .connecting: isUp = false
    case .connected:
      isUp = true
      simulation.opened()
    case .waiting(_, let attempt, let cause):
      note("has no connection (\(attempt)): \(cause.code)")
      oracle.check(plan.persists, number, "waits for a connection, where it should not")
      isUp = false
    case .closed(let cause):
      isUp = false
      oracle.check(
        !plan.persists || cause.code == .closed, number, "doesn't come back: \(cause)")
    }
  }

  private func connected(_ result: Result<Client, ClientError>) {
    isConnecting = false
    oracle.check(loop.isCurrent, number, "a completion isn't called on the loop")
    switch result {
    case .failure(let error):
      note("can't connect: \(error)")
      comeBack()
    case .success(let client):
      guard !isGone, !simulation.isLeaving else { return client.close() }
      note("connected, \(name)")
      self.client = client
      last = client
      let peer = Unsent(self)
      watch = client.connectionState.sink { peer.value?.hear($0) }
      begin(client)
    }
  }

  private func begin(_ client: Client) {
    for producer in plan.producers { producers.append(LibraryProducer(producer, peer: self, client: client)) }
    for plan in plan.subscribers { subscribe(plan, left: plan.subscriptions, within: .milliseconds(30)) }
    if isSettling { for participant in producers { participant.settle() } }
  }

  func subscribe(_ plan: SubscriberPlan, left: Int, within delay: Duration) {
    guard left > 0 else { return }
    let attempt = attempts
    _ = loop.schedule(after: random.next(in: .zero...delay)) { [weak self] in
      guard let self, let client, attempt == attempts, client.failure == nil else { return }
      let subscriber = LibrarySubscriber(plan, left: left - 1, peer: self, client: client)
      subscribers.append(subscriber)
      if isSettling { subscriber.settle() }
    }
  }

  private func comeBack() {
    guard plan.reconnects, !isGone, !oracle.brokerIsStopping, !simulation.isLeaving else { return }
    let delay = random.next(in: .milliseconds(1) ... .milliseconds(200))
    _ = loop.schedule(after: delay) { [weak self] in self?.connect() }
  }

  // MARK: The end of a connection

  /// Handles a closed client.
  func noticeFailure() {
    guard let client, let failure = client.failure else { return }
    note("lost its connection: \(failure.code)")
    check(failure)
    forget()
    comeBack()
  }

  private func check(_ failure: ClientError) {
    let isExcused = isDisturbed || oracle.excusesTimeouts
    switch failure.code {
    case .closed: break
    case .shuttingDown: oracle.check(oracle.brokerIsStopping, number, "shutting-down, out of season")
    case .cutOff: oracle.check(isExcused || oracle.brokerIsStopping, number, "cut off without a reason")
    case .keepaliveTimeout: oracle.check(isExcused, number, "given up as dead: \(failure)")
    default: oracle.fail(number, "the connection ended with \(failure.code): \(failure)")
    }
  }

  private func forget() {
    for producer in producers { producer.disconnected() }
    for subscriber in subscribers { subscriber.disconnected() }
    producers = []
    subscribers = []
    watch = nil
    isUp = false
    client = nil
  }

  func hangUp(_ manner: Departure) {
    guard let client else { return }
    note("hangs up: \(manner)")
    switch manner {
    case .close: if random.oneIn(2) { client.close() }
    case .reset:
      isDisturbed = true
      connection?.reset()
      return
    case .cut:
      isDisturbed = true
      connection?.cut()
      return
    case .silence:
      isDisturbed = true
      loop.stall()
      return
    }
    // Dropping the last reference closes it, too.
    forget()
    comeBack()
  }

  func abandon() {
    isGone = true
    client?.close()
    forget()
  }

  /// Kills its process.
  func kill() {
    note("is killed")
    isGone = true
    forget()
    last = nil
  }

  /// Whether the last client is still retained although nothing should retain it.
  var holdsClient: Bool { last != nil }

  // MARK: The course of things

  func meddle() {
    if client?.failure != nil { loop.perform { noticeFailure() } }
    for subscriber in subscribers where random.oneIn(8) { subscriber.meddle() }
  }

  func over(_ subscriber: LibrarySubscriber) {
    subscribers.removeAll { $0 === subscriber }
  }

  func settle() {
    isSettling = true
    loop.resume()
    if client == nil, plan.reconnects || attempts == 0 { connect() }
    for producer in producers { producer.settle() }
    for subscriber in subscribers { subscriber.settle() }
  }

  var unsettled: String? {
    if isGone { return nil }
    if isConnecting { return "\(name) is connecting" }
    guard isConnected else { return plan.reconnects ? "\(name) is not connected" : nil }
    guard isUp else { return "\(name) waits for a connection" }
    for producer in producers { if let what = producer.unsettled { return "\(name): \(what)" } }
    for subscriber in subscribers { if let what = subscriber.unsettled { return "\(name): \(what)" } }
    // Both sides notice a lost connection eventually.
    let found = simulation.inspector.attachments(of: name)
    if let attachments, found != attachments {
      return "\(name) thinks that it has \(attachments), and the broker that it has \(found)"
    }
    return nil
  }

  var attachments: (subscriptions: Int, publications: Int)? {
    guard isConnected, !subscribers.contains(where: \.mayLinger), !producers.contains(where: \.mayLinger)
    else { return nil }
    return (subscribers.count, producers.count { $0.isAttached })
  }
}

/// A weak reference for closures that are `Sendable` by type but run on one thread.
// @unchecked: a simulation runs on one thread at a time.
final class Unsent<Value: AnyObject>: @unchecked Sendable {
  weak var value: Value?

  init(_ value: Value) {
    self.value = value
  }
}
