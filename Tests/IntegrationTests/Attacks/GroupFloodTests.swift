import SluiceWire
import TestSupport
import Testing

/// Groups that are created and immediately left. They stay without members, and their memory is bounded.
@Suite(.onItsOwnThread) struct GroupFloodTests {
  @Test func joinAndCancel() throws {
    let scene = try AttackScene("JOIN and CANCEL", "--memory", "64MiB")
    var round = 0
    var refusals: [Fault] = []
    try scene.run(growingBy: 96 << 20, leaving: 24 << 20) {
      let client = try scene.broker.client("flood")
      for start in stride(from: 0, to: 40_000, by: 500) {
        var frames: [UInt8] = []
        for number in start..<start + 500 {
          JoinGroup(topic: "flooded.\(number % 10)", group: "g\(round).\(number)", grantedThrough: 0)
            .encode(stream: 1, into: &frames)
          Cancel().encode(stream: 1, into: &frames)
        }
        try client.send(raw: frames)
        var left = 0
        while left < 500 {
          let frame = try client.receive()
          if frame.type == .error { refusals.append(try frame.decode(Fault.self)) }
          if frame.type == .cancelled { left += 1 }
        }
      }
      try client.roundTrip()
      round += 1
    }
    #expect(refusals.allSatisfy { $0.code == .limitReached })
    #expect(refusals.contains { $0.message.contains("--memory") })
    #expect(try scene.broker.metric("kept_bytes") < 40 << 20)
    #expect(try scene.broker.metric("memory_ceiling_reached") == 0)

    // Deleting the topics frees the memory.
    let admin = try scene.broker.client("admin")
    for number in 0..<10 { try admin.delete("flooded.\(number)") }
    #expect(try scene.broker.metric("kept_bytes") < 1 << 20)
  }
}
