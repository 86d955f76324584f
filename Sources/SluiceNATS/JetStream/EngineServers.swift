import FoundationEssentials

/// A server's description of itself, with the properties that determine whether the engine can lose data.
public struct EngineServer: Hashable, Sendable {
  public var name: String
  /// Such as `2.15.1`.
  public var version: String
  /// Whether JetStream runs on the server.
  public var hasJetStream: Bool
  /// Whether each write is synced before it is acknowledged: `sync_interval: always`.
  public var syncsAlways: Bool
  /// The interval of syncs otherwise, in nanoseconds.
  public var syncInterval: Int64
  /// Its stored bytes, and its limit (`max_file_store`); nil if it doesn't report them.
  public var stored: UInt64?
  public var storageLimit: UInt64?

  public init(
    name: String, version: String, hasJetStream: Bool = true, syncsAlways: Bool = true,
    syncInterval: Int64 = 0, stored: UInt64? = nil, storageLimit: UInt64? = nil
  ) {
    self.name = name
    self.version = version
    self.hasJetStream = hasJetStream
    self.syncsAlways = syncsAlways
    self.syncInterval = syncInterval
    self.stored = stored
    self.storageLimit = storageLimit
  }

  /// The used share of its storage, in percent; nil if it doesn't report it.
  public var storageShare: Int? {
    guard let stored, let storageLimit, storageLimit > 0 else { return nil }
    return Int(Double(stored) / Double(storageLimit) * 100)
  }

  /// The reasons why this server can't be trusted with data, in sentences without a full stop; empty if it can.
  ///
  /// - Parameter minimum: the oldest accepted version.
  public func objections(minimumVersion minimum: String = Self.minimumVersion) -> [String] {
    var objections: [String] = []
    if Self.numbers(of: version).lexicographicallyPrecedes(Self.numbers(of: minimum)) {
      objections.append(
        "server \(name) has version \(version), and at least \(minimum) is needed; upgrade it")
    }
    if !hasJetStream {
      objections.append("server \(name) has no JetStream; enable it")
    } else if !syncsAlways {
      objections.append(
        "server \(name) acknowledges writes up to \(Duration.nanoseconds(syncInterval)) before they are on its disk; set sync_interval: always in its jetstream block"
      )
    }
    return objections
  }

  /// The oldest version of the engine that is known to keep what it has acknowledged.
  public static let minimumVersion = "2.15.1"

  /// The numbers of a version, such that `2.15.1-beta.2` sorts before `2.15.1`.
  private static func numbers(of version: String) -> [Int] {
    let parts = version.split(separator: "-", maxSplits: 1)
    var numbers = (parts.first ?? "").split(separator: ".").prefix(3).map { Int($0) ?? 0 }
    while numbers.count < 3 { numbers.append(0) }
    return numbers + [parts.count > 1 ? 0 : 1]
  }
}

extension JetStream {
  /// The subject on which each server reports the state of its JetStream. It belongs to the system account. The client must be a user of that account, or
  /// its account must import the service, which the system account must export with `response: stream`.
  ///
  /// ```text
  /// accounts {
  ///   SYS { users: […], exports: [{ service: "$SYS.REQ.SERVER.PING.JSZ", response: stream, accounts: [SLUICE] }] }
  ///   SLUICE { jetstream: enabled, users: […], imports: [{ service: { account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ" } }] }
  /// }
  /// system_account: SYS
  /// ```
  public static let serversSubject = "$SYS.REQ.SERVER.PING.JSZ"

  private struct ServerAnswer: Decodable {
    struct Server: Decodable {
      var name: String?
      var id: String?
      var ver: String?
      var jetstream: Bool?
    }

    struct Contents: Decodable {
      struct Configuration: Decodable {
        var sync_interval: Int64?
        var sync_always: Bool?
        var max_storage: Int64?
      }

      var disabled: Bool?
      var storage: UInt64?
      var config: Configuration?
    }

    var server: Server
    var data: Contents?
  }

  /// Asks all servers of the engine whether they sync before they acknowledge. See ``serversSubject`` for the necessary settings of the engine.
  ///
  /// - Parameters:
  ///   - expected: the names of servers that must answer, such as ``StreamInfo/servers``; empty if they aren't known.
  ///   - patience: the time for each next answer. The request ends when all expected servers have answered.
  ///   - completion: called with the servers that have answered, sorted by name. Fails with ``NATSError/Code-swift.struct/permissionDenied`` if the account
  ///     may not ask, and with ``NATSError/Code-swift.struct/timeout`` if an expected server didn't answer.
  public func servers(
    expecting expected: [String] = [], patience: Duration = .seconds(1),
    _ completion: @escaping Completion<[EngineServer]>
  ) throws(NATSError) {
    let client = client
    var found: [String: EngineServer] = [:]
    func result() -> Result<[EngineServer], NATSError> {
      let missing = expected.filter { found[$0] == nil }
      guard missing.isEmpty, !found.isEmpty else {
        return .failure(
          NATSError(
            .timeout,
            "these servers didn't say whether they sync what they acknowledge: \(missing.isEmpty ? "all" : missing.joined(separator: ", ")); start them, or wait for them",
            server: client.server))
      }
      return .success(found.values.sorted { $0.name < $1.name })
    }
    try client.requestMany(Self.serversSubject, payload: Array("{}".utf8), timeout: patience) { answer in
      switch answer {
      case .failure(let error) where error.code == .timeout:
        completion(result())
        return .done
      case .failure(let error) where error.code == .noResponders || error.code == .permissionDenied:
        completion(
          .failure(
            NATSError(
              .permissionDenied,
              "this account may not ask whether the engine's servers sync what they acknowledge; export the service \(Self.serversSubject) of the system account to it with response: stream, and import it",
              server: client.server)))
        return .done
      case .failure(let error):
        completion(.failure(error))
        return .done
      case .success(let message):
        if let answer = try? JSONDecoder().decode(ServerAnswer.self, from: Data(message.payload.array)) {
          let name = answer.server.name ?? answer.server.id ?? "?"
          let configuration = answer.data?.config
          found[name] = EngineServer(
            name: name, version: answer.server.ver ?? "",
            hasJetStream: configuration != nil && answer.data?.disabled != true,
            syncsAlways: configuration?.sync_always ?? false,
            syncInterval: configuration?.sync_interval ?? 0, stored: answer.data?.storage,
            storageLimit: configuration?.max_storage.map { UInt64(max($0, 0)) })
        }
        guard !expected.isEmpty, expected.allSatisfy({ found[$0] != nil }) else { return .more }
        completion(result())
        return .done
      }
    }
  }
}
