import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO
import Testing

@testable import SluiceDaemon

@Suite("The daemon's settings for who may connect")
struct AccessSettingsTests {
  private func settings(_ arguments: [String], environment: [String: String] = [:]) throws(UsageError)
    -> AccessSettings
  {
    try DaemonSettings(
      ArgumentParser(DaemonPage.page()).parse(arguments, environment: { environment[$0] })
    ).access
  }

  @Test("clients are asked who they are where there is something to look them up in, or where that is said")
  func asking() throws {
    let table: [([String], Bool)] = [
      ([], false), (["--users", "u"], true), (["--token-keys", "k"], true),
      (["--auth", "off"], false), (["--users", "u", "--auth", "on", "--permissions", "p"], true),
    ]
    for (arguments, expected) in table {
      #expect(try settings(arguments).authenticatesClients == expected, "\(arguments)")
    }
  }

  @Test("options and the environment reach the settings")
  func options() throws {
    let options = try settings([
      "--users", "u", "--token-keys", "k", "--permissions", "p", "--certificate-names", "listed",
    ])
    var files = AccessFiles()
    files.users = "u"
    files.tokenKeys = "k"
    files.permissions = "p"
    files.certificatesMustBeListed = true
    #expect(options.files == files)
    let others = try settings([
      "--auth", "on", "--permissions", "p", "--anonymous", "guest", "--link-key", "l",
    ])
    #expect(others.files.anonymous == "guest" && others.files.linkKey == "l")
    let environment = [
      "SLUICED_USERS": "u", "SLUICED_TOKEN_KEYS": "k", "SLUICED_PERMISSIONS": "p",
      "SLUICED_CERTIFICATE_NAMES": "listed",
    ]
    #expect(try settings([], environment: environment).files == files)
    let limits = try DaemonSettings(
      ArgumentParser(DaemonPage.page()).parse([
        "--max-authentications", "7", "--max-authentications-per-address", "3",
      ])
    ).broker.limits
    #expect(limits.authentications == 7 && limits.authenticationsPerAddress == 3)
    let isOpen = ["SLUICED_ALLOW_UNAUTHENTICATED": "1", "SLUICED_LISTEN": "0.0.0.0:0"]
    #expect(try settings([], environment: isOpen).allowsUnauthenticated)
    let isClosed = ["SLUICED_ALLOW_UNAUTHENTICATED": "false", "SLUICED_LISTEN": "0.0.0.0:0"]
    #expect(throws: UsageError.self) { try settings([], environment: isClosed) }
  }

  @Test(
    "an address that others can reach isn't listened on where every client may do everything",
    arguments: [
      ("0.0.0.0:0", false), ("[::]:0", false), ("192.0.2.1:7420", false), ("broker.example:7420", false),
      ("127.evil.example:7420", false), ("128.0.0.1:7420", false), ("[::ffff:192.0.2.1]:7420", false),
      ("[::2]:7420", false), ("127.0.0.1:0", true), ("127.255.255.254:0", true), ("[::1]:0", true),
      ("[::ffff:127.0.0.1]:0", true), ("localhost:0", true), ("unix:/tmp/x", true),
    ])
  func openAddresses(address: String, isFine: Bool) throws {
    #expect(try SocketAddress(parsing: address).isReachedByOthers == !isFine)
    for listen in [[address], ["127.0.0.1:0", address]] {
      let arguments = listen.flatMap { ["--listen", $0] }
      do {
        _ = try settings(arguments)
        #expect(isFine)
      } catch {
        #expect(!isFine)
        #expect(
          error.description.hasPrefix(
            "--listen: every client that reaches \(address) could read and write every topic")
        )
        #expect(
          error.description.contains("--users FILE") && error.description.contains("--allow-unauthenticated"))
      }
      #expect(try settings(arguments + ["--allow-unauthenticated"]).allowsUnauthenticated)
      #expect(try settings(arguments + ["--users", "u"]).authenticatesClients)
    }
  }

  @Test(
    "what contradicts itself is refused",
    arguments: [
      (["--users", "u", "--auth", "off"], "--auth: off contradicts --users; leave one of them out"),
      (
        ["--token-keys", "k", "--auth", "off"], "--auth: off contradicts --token-keys; leave one of them out"
      ),
      (
        ["--auth", "on"],
        "--auth: no client could authenticate; name --users FILE or --token-keys DIR, or listen"
      ),
      (
        ["--permissions", "p"], "--permissions: clients don't authenticate; let them with"
      ),
      (["--permissions", "p", "--auth", "off"], "--permissions: clients don't authenticate"),
      (
        ["--users", "u", "--allow-unauthenticated"],
        "--allow-unauthenticated: clients authenticate; leave it out"
      ),
      (["--users", "u", "--anonymous", "g"], "--anonymous: anonymous clients have no permissions; grant"),
      (["--anonymous", "g"], "--anonymous: no client authenticates, so all are anonymous; choose"),
      (["--users", "u", "--permissions", "p", "--anonymous", ""], "--anonymous: '' can't be an identity"),
      (["--users", ""], "--users: the name of the file is empty"),
      (["--token-keys", ""], "--token-keys: the name of the directory is empty"),
      (["--auth", "yes"], "--auth: there is no 'yes'; it can be on or off"),
      (["--certificate-names", "lsted"], "--certificate-names: there is no 'lsted'; did you mean 'listed'?"),
      (["--allow-unauthenticated=perhaps"], "--allow-unauthenticated: there is no 'perhaps'"),
    ])
  func refusals(arguments: [String], beginning: String) {
    do {
      _ = try settings(arguments)
      Issue.record("taken")
    } catch {
      #expect(error.description.hasPrefix(beginning), "\(error)")
    }
  }
}
