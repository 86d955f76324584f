import SluiceIO
import SluiceSimulation

/// A participant in a simulation with a connection of its own.
protocol Participant: AnyObject {
  var number: Int { get }
  var plan: PeerPlan { get }
  var loop: SimulatedLoop { get }
  /// What it calls itself on its present connection.
  var name: String { get }
  /// The silence after which the broker gives it up.
  var agreedKeepalive: Duration { get }
  /// Why the broker may drop its connection.
  var isDisturbed: Bool { get set }
  var isConnected: Bool { get }
  /// The present connection, for cutting it.
  var connection: SimulatedConnection? { get }

  /// All of these on the loop.
  func connect()
  func hangUp(_ manner: Departure)
  func abandon()
  func settle()

  /// Does something from elsewhere, as another thread would; not on the loop.
  func meddle()

  /// What is still to be done; nil when that is nothing.
  var unsettled: String? { get }
  /// Subscriptions and publications that the broker should have of it now.
  var attachments: (subscriptions: Int, publications: Int)? { get }
}
