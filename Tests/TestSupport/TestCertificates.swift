import Glibc

/// Certificates for a test, made by `scripts/certs.sh` in a separate directory.
public final class TestCertificates: Sendable {
  private let directory: TemporaryDirectory

  /// Creates certificates of an authority, a server for localhost, 127.0.0.1, ::1 and `names`, and a client called `client`.
  ///
  /// - Parameter days: how long those of the server and the client are valid; negative for expired ones.
  public init(names: [String] = [], client: String = "client", days: Int = 30) throws {
    directory = try TemporaryDirectory()
    try renew(names: names, client: client, days: days)
  }

  /// Creates certificates of an authority, and of `nodes`, valid also for `names`; see ``path(of:)``.
  public init(nodes: [String], names: [String] = []) throws {
    directory = try TemporaryDirectory()
    try run(names, ["SLUICE_CERTS_NODES": nodes.joined(separator: " ")])
  }

  /// Creates new certificates of the server and the client, signed by the same authority.
  public func renew(names: [String] = [], client: String = "client", days: Int = 30) throws {
    try run(names, ["SLUICE_CERTS_CLIENT": client, "SLUICE_CERTS_DAYS": "\(days)"])
  }

  private func run(_ names: [String], _ environment: [String: String]) throws {
    let script = "\(Self.repository)/scripts/certs.sh"
    let process = try ChildProcess("/bin/sh", [script, directory.path] + names, environment: environment)
    let exit = try process.waitForExit()
    try require(exit == .code(0), "\(script): \(exit): \(process.standardError.text)")
  }

  /// Certificates that are created once for all tests of a process that don't change them.
  public static func shared() throws -> TestCertificates {
    try common.get()
  }

  private static let common: Result<TestCertificates, any Error> = Result {
    let certificates = try TestCertificates()
    // Removed only here, because statics are never released.
    atexit { try? TestCertificates.common.get().directory.remove() }
    return certificates
  }

  public var path: String { directory.path }
  /// The authority's certificate.
  public var authority: String { directory.file("authority.pem") }
  public var server: String { directory.file("server.pem") }
  public var serverKey: String { directory.file("server.key") }
  public var client: String { directory.file("client.pem") }
  public var clientKey: String { directory.file("client.key") }

  /// The path of a node's certificate or another file, such as `n1.pem`.
  public func path(of file: String) -> String { directory.file(file) }

  private static let repository: String = {
    // This file is Tests/TestSupport/TestCertificates.swift.
    let parts = #filePath.split(separator: "/").dropLast(3)
    return "/" + parts.joined(separator: "/")
  }()
}
