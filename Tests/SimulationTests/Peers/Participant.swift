import SluiceIO
import SluiceSimulation

/// A participant in a simulation with its own connection.
protocol Participant: AnyObject {
  var number: Int { get }
  var plan: PeerPlan { get }
  var loop: SimulatedLoop { get }
  /// Its client name on the present connection.
  var name: String { get }
  /// The silence after which the broker closes its connection.
  var agreedKeepalive: Duration { get }
  /// Whether the broker may drop its connection.
  var isDisturbed: Bool { get set }
  var isConnected: Bool { get }
  /// The present connection, so that a test can cut it.
  var connection: SimulatedConnection? { get }

  /// Call all of these on the loop.
  func connect()
  func hangUp(_ manner: Departure)
  func abandon()
  func settle()

  /// Acts from elsewhere, as another thread would; not on the loop.
  func meddle()

  /// The pending work; nil if there is none.
  var unsettled: String? { get }
  /// Its subscriptions and publications that the broker should have now.
  var attachments: (subscriptions: Int, publications: Int)? { get }
}
