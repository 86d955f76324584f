import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// A broker that is stopped while it binds its addresses accepts no connection afterwards.
@Suite struct StopWhileStartingTests {
  /// A network that runs a closure between the binding of an address and the return of the call.
  private final class InterruptedNetwork: Network {
    let network: any Network
    let interruption: Shared<(@Sendable () -> Void)?>

    init(_ network: any Network, _ interruption: Shared<(@Sendable () -> Void)?>) {
      self.network = network
      self.interruption = interruption
    }

    func listen(
      at address: SocketAddress, group: LoopGroup,
      accepted: @escaping @Sendable (any ByteStream, any EventLoop) -> Void
    ) throws -> any Listener {
      let listener = try network.listen(at: address, group: group, accepted: accepted)
      interruption.value?()
      return listener
    }

    func connect(
      to address: SocketAddress, on loop: any EventLoop,
      completion: @escaping (Result<any ByteStream, IOError>) -> Void
    ) -> any ConnectionAttempt {
      network.connect(to: address, on: loop, completion: completion)
    }
  }

  @Test(arguments: [false, true]) func itsListenersAreClosed(atOnce: Bool) throws {
    let address = SocketAddress.host("broker", port: 7420)
    let world = SimulatedWorld(seed: 1, loops: 0, conditions: .calm)
    let interruption = Shared<(@Sendable () -> Void)?>(nil)
    var configuration = BrokerConfiguration()
    configuration.listen = [address]
    let network = InterruptedNetwork(world.network, interruption)
    let broker = try Broker(configuration, network: network, group: LoopGroup([world.makeLoop()]))
    interruption.update { $0 = { [weak broker] in atOnce ? broker?.stop() : broker?.shutdown() } }
    let isStopped = Flag()
    broker.whenStopped { isStopped.raise() }
    try broker.start()
    #expect(world.run(limit: .seconds(20)) { isStopped.isRaised })
    let loop = world.makeLoop()
    let outcome = Shared<Bool?>(nil)
    loop.perform {
      _ = world.network.connect(to: address, on: loop) { result in
        if case .success = result { outcome.update { $0 = true } } else { outcome.update { $0 = false } }
      }
    }
    #expect(world.run(limit: .seconds(20)) { outcome.value != nil })
    #expect(outcome.value == false)
  }
}
