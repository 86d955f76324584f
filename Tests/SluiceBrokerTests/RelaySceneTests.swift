import SluiceIO
import TestSupport
import Testing

/// What another node sends on a link, drawn from seeds: see ``RelayScene``.
@Suite struct RelaySceneTests {
  @Test(arguments: UInt64(1)...60)
  func nothingThatAnotherNodeSendsReachesAClientOutOfOrder(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let bytes = (0..<1_500).map { _ -> UInt8 in
      random.oneIn(3) ? UInt8(truncatingIfNeeded: random.next()) : UInt8(random.next(below: 6))
    }
    try RelayScene.play(ProbeInput(bytes))
  }
}
