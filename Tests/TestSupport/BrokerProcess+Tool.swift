import SluiceWire

/// `sluice` as a process, connected to a broker.
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

  /// Waits until the topic has `count` subscriptions.
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

  /// The environment of the tool: the broker's address, and a long keepalive.
  public static func environment(server: String) -> [String: String] {
    ["SLUICE_SERVER": server, "SLUICE_KEEPALIVE": "15m"]
  }
}
