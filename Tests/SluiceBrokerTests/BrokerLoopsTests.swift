import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceBroker

@Suite struct BrokerLoopsTests {
  /// A broker in a simulation, or in a program that provides the loops, starts no thread.
  @Test func onlyABrokerWithThreadsOfItsOwnBeginsOthers() async throws {
    #expect(BrokerLoops(serving: SimulatedWorld(seed: 1).group).background == nil)
    let loops = try BrokerLoops.threads(count: 1, storage: false, access: false)
    let background = try #require(loops.background)
    await withCheckedContinuation { continuation in
      let isBegun = background { continuation.resume() }
      #expect(isBegun)
      if !isBegun { continuation.resume() }
    }
    loops.stop()
    loops.joinThreads()
  }
}
