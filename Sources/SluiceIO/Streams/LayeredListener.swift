/// A listener of the network beneath, as a layer over it names it: with the layer's scheme.
package final class LayeredListener: Listener {
  private let wanted: SocketAddress
  private let beneath: any Listener
  private let closed: @Sendable () -> Void

  /// - Parameters:
  ///   - wanted: the requested address.
  ///   - beneath: the listener beneath.
  ///   - closed: called each time the listener is closed.
  package init(
    _ wanted: SocketAddress, _ beneath: any Listener, closed: @escaping @Sendable () -> Void = {}
  ) {
    self.wanted = wanted
    self.beneath = beneath
    self.closed = closed
  }

  package var address: SocketAddress { wanted.bound(to: beneath.address) }

  package func close() {
    beneath.close()
    closed()
  }
}
