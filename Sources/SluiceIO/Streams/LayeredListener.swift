/// A listener of the network beneath, as a layer over it names it: with the layer's scheme.
package final class LayeredListener: Listener {
  private let wanted: SocketAddress
  private let beneath: any Listener

  /// - Parameter wanted: the address that was asked for.
  package init(_ wanted: SocketAddress, _ beneath: any Listener) {
    self.wanted = wanted
    self.beneath = beneath
  }

  package var address: SocketAddress { wanted.bound(to: beneath.address) }

  package func close() { beneath.close() }
}
