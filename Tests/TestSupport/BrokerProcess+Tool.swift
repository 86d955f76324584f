import SluiceWire

/// `sluice` as a process, talking to a broker.
extension BrokerProcess {
  public func sluice(
    _ arguments: String..., input: ChildProcess.Input = .nothing, output: ChildProcess.Output = .captured
  ) throws -> ChildProcess {
    try sluice(arguments, input: input, output: output)
  }

  public func sluice(
    _ arguments: [String], input: ChildProcess.Input = .nothing, output: ChildProcess.Output = .captured
  ) throws -> ChildProcess {
    try ChildProcess.sluice(arguments, server: address, input: input, output: output)
  }

  /// Waits until the topic has so many subscriptions.
  public func waitForSubscriptions(_ count: UInt32, on topic: String) throws {
    try eventually("\(count) subscriptions of \(topic)", every: 0.05) {
      try show(topic).summary.subscriptions == count
    }
  }
}

extension ChildProcess {
  public static func sluice(
    _ arguments: [String], server: String, input: Input = .nothing, output: Output = .captured
  ) throws -> ChildProcess {
    try ChildProcess(
      BuiltProduct.path("sluice"), arguments, environment: environment(server: server), input: input,
      output: output)
  }

  /// Where the tool finds the broker, and that it is in no hurry.
  public static func environment(server: String) -> [String: String] {
    ["SLUICE_SERVER": server, "SLUICE_KEEPALIVE": "15m"]
  }
}
