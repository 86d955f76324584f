import SluiceIO

/// A connection of a simulated network, for tests to disturb.
///
/// Unchecked: see `SimulatedLoop`.
public final class SimulatedConnection: @unchecked Sendable {
  /// Counted from 1, in the order in which connections were opened.
  public let number: Int
  /// The address at which it was accepted.
  public let address: SocketAddress
  /// The side that connected. To be read and written by its handler only.
  public let client: any ByteStream
  /// The side that accepted.
  public let server: any ByteStream
  public private(set) var isCut = false

  let clientSide: SimulatedStream
  let serverSide: SimulatedStream
  private let pipes: [SimulatedPipe]
  private let scheduler: SimulatedScheduler

  init(
    number: Int, address: SocketAddress, origin: SocketAddress, clientLoop: SimulatedLoop,
    serverLoop: SimulatedLoop, scheduler: SimulatedScheduler, settings: SimulatedSettings
  ) {
    self.number = number
    self.address = address
    self.scheduler = scheduler
    let up = SimulatedPipe(name: "\(number) to server", scheduler: scheduler, settings: settings)
    let down = SimulatedPipe(name: "\(number) to client", scheduler: scheduler, settings: settings)
    pipes = [up, down]
    clientSide = SimulatedStream(
      name: "\(number) client", loop: clientLoop, peer: address, incoming: down, outgoing: up,
      scheduler: scheduler, settings: settings)
    serverSide = SimulatedStream(
      name: "\(number) server", loop: serverLoop, peer: origin, incoming: up, outgoing: down,
      scheduler: scheduler, settings: settings)
    client = clientSide
    server = serverSide
  }

  /// Cuts the connection: no bytes arrive any more in either direction, and neither side gets an event.
  public func cut() {
    guard !isCut else { return }
    isCut = true
    scheduler.note("\(number): cut")
    for pipe in pipes { pipe.cut() }
  }

  /// Puts the cable back. Bytes that were sent meanwhile arrive after a while; a reset that was sent meanwhile doesn't.
  public func heal() {
    guard isCut else { return }
    isCut = false
    scheduler.note("\(number): heals")
    for pipe in pipes { pipe.heal() }
  }

  /// Has both sides receive a reset, as from a router on the way that forgot the connection. Even through a cut.
  public func reset() {
    scheduler.note("\(number): reset")
    for pipe in pipes { pipe.tear() }
  }

  /// When the server closed its side, and for how long nothing had arrived there by then; nil as long as it hasn't closed.
  var serverClosing: (time: MonotonicTime, silence: Duration)? {
    guard let time = serverSide.closedAt else { return nil }
    return (time, time - (serverSide.lastHeard ?? MonotonicTime(nanoseconds: 0)))
  }

  /// Both sides are closed and nothing of the connection is left.
  public var isOver: Bool { clientSide.isGone && serverSide.isGone }
}
