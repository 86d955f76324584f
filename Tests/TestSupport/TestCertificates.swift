import Glibc

/// Certificates for a test, made by `scripts/certs.sh` in a directory of their own.
public final class TestCertificates: Sendable {
  private let directory: TemporaryDirectory

  /// Of an authority, a server called localhost, 127.0.0.1, ::1 and `names`, and a client called `client`.
  ///
  /// - Parameter days: how long the server's and the client's are valid; negative for ones that have expired.
  public init(names: [String] = [], client: String = "client", days: Int = 30) throws {
    directory = try TemporaryDirectory()
    try renew(names: names, client: client, days: days)
  }

  /// Of an authority, and of nodes called so and `names`; see ``path(of:)``.
  public init(nodes: [String], names: [String] = []) throws {
    directory = try TemporaryDirectory()
    try run(names, ["SLUICE_CERTS_NODES": nodes.joined(separator: " ")])
  }

  /// Makes the server's and the client's anew, by the same authority.
  public func renew(names: [String] = [], client: String = "client", days: Int = 30) throws {
    try run(names, ["SLUICE_CERTS_CLIENT": client, "SLUICE_CERTS_DAYS": "\(days)"])
  }

  private func run(_ names: [String], _ environment: [String: String]) throws {
    let script = "\(Self.repository)/scripts/certs.sh"
    let process = try ChildProcess("/bin/sh", [script, directory.path] + names, environment: environment)
    let exit = try process.waitForExit()
    try require(exit == .code(0), "\(script): \(exit): \(process.standardError.text)")
  }

  /// Some that are made once for all tests of a process that don't change them.
  public static func shared() throws -> TestCertificates {
    try common.get()
  }

  private static let common: Result<TestCertificates, any Error> = Result {
    let certificates = try TestCertificates()
    // Released only here: what is static stays to the end.
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

  /// A node's certificate, or another file: `n1.pem`.
  public func path(of file: String) -> String { directory.file(file) }

  private static let repository: String = {
    // This file is Tests/TestSupport/TestCertificates.swift.
    let parts = #filePath.split(separator: "/").dropLast(3)
    return "/" + parts.joined(separator: "/")
  }()
}
