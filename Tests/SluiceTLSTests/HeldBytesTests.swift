import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceTLS

/// Whether a stream reports its waiting bytes, which its owner counts towards the memory limits.
@Suite struct HeldBytesTests {
  private func scene(buffer: Int) throws -> Scene {
    var conditions = SimulatedConditions.calm
    conditions.bufferSize = buffer
    return try Scene(conditions: conditions)
  }

  @Test func whatThePeerDoesNotReadIsCountedUntilItDoes() throws {
    let scene = try scene(buffer: 20_000)
    let pair = try scene.pair()
    #expect(pair.server.stream.heldBytes == 0)
    pair.client.pause(true)
    pair.server.send(pattern(1_000_000))
    scene.world.run(for: .seconds(1))
    #expect(pair.server.shortWrites > 0)
    #expect((64 << 10...256 << 10).contains(pair.server.stream.heldBytes))
    pair.client.pause(false)
    #expect(scene.world.run { pair.client.received.count == 1_000_000 })
    #expect(pair.server.stream.heldBytes == 0)
  }

  @Test func theOwnerIsToldWhenItHasNothingElseToDo() throws {
    let scene = try scene(buffer: 1_000)
    let pair = try scene.pair()
    pair.client.pause(true)
    pair.server.send(pattern(50_000))
    scene.world.run(for: .seconds(1))
    // All of it was accepted, so the owner waits for nothing.
    #expect(pair.server.shortWrites == 0 && pair.server.unsent == 0)
    let held = pair.server.stream.heldBytes
    #expect(held > 40_000)
    let calls = pair.server.holdsOtherCalls
    pair.client.pause(false)
    #expect(scene.world.run { pair.client.received.count == 50_000 })
    #expect(pair.server.writableCalls == 0 && pair.server.holdsOtherCalls > calls)
    #expect(pair.server.stream.heldBytes == 0)
  }

  @Test func aRecordThatIsNotReadToItsEndIsCounted() throws {
    let scene = try scene(buffer: 100_000)
    let pair = try scene.pair {
      $0.readSize = 100
      $0.onReadable = { talker in
        talker.readOnce()
        talker.stream.readsPaused = true
      }
    }
    pair.server.send(pattern(5_000))
    #expect(scene.world.run { pair.client.received.count == 100 })
    #expect(pair.client.stream.heldBytes >= 4_900)
    pair.client.onReadable = nil
    pair.client.pause(false)
    #expect(scene.world.run { pair.client.received.count == 5_000 })
    #expect(pair.client.stream.heldBytes == 0)
  }
}
