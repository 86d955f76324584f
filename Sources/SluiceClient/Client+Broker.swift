import SluiceWire

@_exported import struct SluiceWire.BrokerInfo
@_exported import struct SluiceWire.ConnectionInfo
@_exported import struct SluiceWire.StorageStatus

// Requests about the whole broker. They need the right to administer every topic.
extension Client {
  /// The broker's connections, in the order of their numbers.
  ///
  /// - Throws: ``ClientError/Code/permissionDenied``; ``ClientError/Code/requestTimeout``; why the client was closed; ``ClientError/Code/cancelled``.
  public func connections() async throws(ClientError) -> [ConnectionInfo] {
    try await Reply.wait { connections(completion: $0) }
  }

  public func connections(completion: @escaping Completion<[ConnectionInfo]>) {
    pages({ (page: Connections) in (page.connections, page.more) }, completion) {
      ConnectionList(after: $0?.connection ?? 0, limit: Self.pageSize)
    }
  }

  /// One of the broker's connections.
  ///
  /// - Parameter number: the broker's number for it.
  /// - Throws: ``ClientError/Code/unknownConnection``; otherwise as ``connections()``.
  public func connection(_ number: UInt64) async throws(ClientError) -> ConnectionInfo {
    try await Reply.wait { connection(number, completion: $0) }
  }

  public func connection(_ number: UInt64, completion: @escaping Completion<ConnectionInfo>) {
    guard number > 0 else { return completion(.failure(.unknownConnection(number))) }
    ask(ConnectionList(after: number - 1, limit: 1)) { (result: Result<Connections, ClientError>) in
      completion(
        result.flatMap { page in
          guard let found = page.connections.first, found.connection == number else {
            return .failure(.unknownConnection(number))
          }
          return .success(found)
        })
    }
  }

  /// Closes a connection of a client. The client gets ``ClientError/Code/closedByOperator`` and may connect again.
  ///
  /// - Parameter number: the broker's number for it.
  /// - Throws: ``ClientError/Code/unknownConnection``; otherwise as ``connections()``.
  public func closeConnection(_ number: UInt64) async throws(ClientError) {
    try await Reply.wait { closeConnection(number, completion: $0) }
  }

  public func closeConnection(_ number: UInt64, completion: @escaping Completion<Void>) {
    ask(ConnectionClose(connection: number), completion)
  }

  /// The state of the broker: its store, the topics whose producers are stopped, its counters and gauges.
  ///
  /// - Throws: as ``connections()``.
  public func brokerInfo() async throws(ClientError) -> BrokerInfo {
    try await Reply.wait { brokerInfo(completion: $0) }
  }

  public func brokerInfo(completion: @escaping Completion<BrokerInfo>) {
    ask(BrokerShow(), completion)
  }
}

extension ClientError {
  fileprivate static func unknownConnection(_ number: UInt64) -> ClientError {
    ClientError(
      .unknownConnection, "there is no connection \(number)",
      brokerCode: ErrorCode.unknownConnection.rawValue)
  }
}
