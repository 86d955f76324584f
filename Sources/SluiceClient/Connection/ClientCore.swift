import ReactiveCore
import SluiceIO
import SluiceWire
import Synchronization

/// What lives as long as anybody uses a client: the way onto its loop, and the connection there.
///
/// ``Client`` is the handle whose release closes it; topics and subjects made by the client hold only this.
// @unchecked: `inbox` and `end` have locks; what is marked so is used on the loop only; the rest is constant.
@usableFromInline
final class ClientCore: @unchecked Sendable {
  typealias Opened = @Sendable (Result<Welcome, ClientError>) -> Void

  private enum State {
    case idle
    case connecting(Connector, Opened)
    /// The stream keeps the connection, and the connection keeps this.
    case open(Weak<Connection>)
    case closed(ClientError)
  }

  let address: SocketAddress
  let options: ClientOptions
  let loop: any EventLoop
  private let network: any Network

  // From any thread.
  private let inbox = Inbox()
  private let end = Mutex<ClientError?>(nil)
  private var signal: (any LoopSignal)!

  // On the loop only.
  private var state = State.idle
  private var commands: [Command] = []
  /// Subscriptions without a stream that still have something for their subscribers, who haven't asked for it.
  private var lingering: [DemandBridge] = []

  init(address: SocketAddress, options: ClientOptions, network: any Network, loop: any EventLoop) {
    self.address = address
    self.options = options
    self.network = network
    self.loop = loop
    signal = loop.makeSignal { [weak self] in self?.turn() }
  }

  // MARK: From any thread

  /// Leaves a note for the loop. Notes of one thread are taken up in their order.
  func post(_ command: Command) {
    if inbox.append(command) { signal.fire() }
  }

  /// Why the client is closed; nil while it isn't.
  var failure: ClientError? { end.withLock { $0 } }

  /// Connects; calls `opened` on the loop, once.
  func connect(_ opened: @escaping Opened) {
    loop.execute { [self] in begin(opened) }
  }

  // MARK: On the loop

  /// Makes `turn()` run at the end of this turn of the loop.
  func flushSoon() {
    signal.fire()
  }

  private func begin(_ opened: @escaping Opened) {
    if case .closed(let error) = state { return opened(.failure(error)) }
    let connector = Connector(core: self) { [self] result in
      guard case .connecting(_, let opened) = state else { return }
      switch result {
      case .success(let (connection, welcome)):
        state = .open(Weak(connection))
        opened(.success(welcome))
      case .failure(let error):
        close(error)
      }
    }
    state = .connecting(connector, opened)
    connector.start(on: network)
  }

  /// Takes up the notes, then sends what there is to send.
  private func turn() {
    inbox.take(into: &commands)
    var batch: [Command] = []
    swap(&batch, &commands)
    for command in batch { perform(command) }
    batch.removeAll(keepingCapacity: batch.capacity <= 1_024)
    swap(&batch, &commands)
    if case .open(let connection) = state { connection.object?.flush() }
  }

  private func perform(_ command: Command) {
    if case .close(let error) = command { return close(error) }
    if case .open(let weak) = state, let connection = weak.object { return connection.perform(command) }
    let error = if case .closed(let error) = state { error } else { ClientError.closedHere }
    switch command {
    case .open(let bridge): bridge.fail(error)
    case .demand(let bridge):
      bridge.demandNoted()
      bridge.drain()
    case .cancel(let bridge): bridge.forget()
    case .openPublication(let publication), .advance(let publication): publication.end(.failure(error))
    case .request(let request): request.completion(.failure(error))
    case .close: break
    }
  }

  func add(lingering bridge: DemandBridge) {
    lingering.append(bridge)
  }

  func remove(lingering bridge: DemandBridge) {
    lingering.removeAll { $0 === bridge }
  }

  /// Ends everything, once. What subscribers still may ask for stays until it is done from here.
  func close(_ error: ClientError) {
    if error.code == .closed {
      for bridge in exchange(&lingering, for: []) { bridge.fail(error) }
    }
    switch state {
    case .closed: return
    case .idle:
      state = .closed(error)
      end.withLock { $0 = error }
    case .connecting(let connector, let opened):
      state = .closed(error)
      end.withLock { $0 = error }
      connector.abandon()
      opened(.failure(error))
    case .open(let connection):
      state = .closed(error)
      end.withLock { $0 = error }
      connection.object?.close(error)
    }
  }
}

/// A reference that keeps nothing alive.
struct Weak<Object: AnyObject> {
  private(set) weak var object: Object?

  init(_ object: Object) {
    self.object = object
  }
}
