import TestSupport
import Testing

/// Starting the broker's program successfully, or with an error.
@Suite(.onItsOwnThread) struct StartTests {
  @Test func aSecondBrokerOnTheSamePortSaysSoInOneLine() throws {
    let broker = try BrokerProcess()
    let second = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--listen", broker.address, "--admin", "off"])
    #expect(try second.waitForExit() == .code(2))
    #expect(second.standardOutput.text == "")
    #expect(second.standardError.lines.count == 1)
    #expect(second.standardError.text.contains(broker.address))
    try broker.client().roundTrip()
  }

  @Test func nothingIsHalfStarted() throws {
    let broker = try BrokerProcess()
    let second = try ChildProcess(
      BuiltProduct.path("sluiced"),
      ["--listen", "127.0.0.1:0", "--listen", broker.address, "--admin", "off"])
    #expect(try second.waitForExit() == .code(2))
    #expect(second.standardOutput.text == "")
    #expect(second.standardError.lines.count == 1)
  }

  @Test func itListensInSeveralPlaces() throws {
    let broker = try BrokerProcess("--listen", "127.0.0.1:0", "--listen", "127.0.0.1:0")
    #expect(Set(broker.addresses).count == 3)
    for address in broker.addresses {
      let client = try RawClient(address)
      try client.shakeHands()
      try client.roundTrip()
    }
  }
}
