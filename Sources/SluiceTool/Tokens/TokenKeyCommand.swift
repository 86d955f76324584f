import SluiceAccess
import SluiceCommand
import SluiceTLS

/// `sluice token key`
struct TokenKeyCommand: Command {
  let algorithm: TokenAlgorithm
  let output: String
  let publicOutput: String?

  static let page = CommandPage(
    "sluice token key", summary: "make a key that tokens are signed with",
    options: [
      CommandOption(
        "algorithm", value: "NAME",
        help:
          "ed25519 or rs256, a pair of keys of which the broker needs the public one; or hs256, a secret that both have.",
        standard: "ed25519", choices: ["ed25519", "rs256", "hs256"]),
      CommandOption(
        "output", value: "FILE",
        help: "Where the key goes that signs, for its owner alone. Mustn't be there yet."),
      CommandOption(
        "public", value: "FILE",
        help: "Where the public key goes; beside the other with .pub behind its name unless told."),
    ],
    details: [
      """
      The broker has public keys as ID.pem and secrets as ID.secret in the directory of its --token-keys, where ID is what sluice token make is told as \
      --key-id. With a secret, whoever can read the broker's file can make tokens as well.
      """
    ],
    examples: [
      .init(
        "A pair of keys, one half of which is the broker's.",
        "sluice token key --output signing.pem --public /etc/sluice/keys/2026.pem"),
      .init(
        "A secret that both have.", "sluice token key --algorithm hs256 --output /etc/sluice/keys/2026.secret"
      ),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    algorithm =
      try arguments.value("algorithm", Values.choice(["ed25519": .eddsa, "rs256": .rs256, "hs256": .hs256]))
      ?? .eddsa
    guard let path = arguments.text("output"), !path.isEmpty else {
      throw UsageError("--output FILE says where the key goes")
    }
    output = path
    publicOutput = arguments.text("public")
    if algorithm == .hs256, publicOutput != nil {
      throw UsageError("--public: a secret has no public half; leave it out, or take ed25519")
    }
  }

  func start(_ run: Run) {
    AccessJob.start(run) { () throws(AccessJob.Failure) in
      do throws(AccessFileError) {
        try make(run)
      } catch {
        throw .init(error)
      }
      return ""
    }
  }

  private func make(_ run: Run) throws(AccessFileError) {
    guard algorithm != .hs256 else {
      try KeyFile.make(output, TokenKey.newSecret(), isSecret: true)
      return run.note(
        "made \(output); the broker has the same as ID.secret in the directory of its --token-keys")
    }
    let key: PrivateKey
    do {
      key = try PrivateKey.generate(algorithm == .eddsa ? .ed25519 : .rsa(bits: 3072))
    } catch {
      throw AccessFileError(output, "has \(error)")
    }
    let publicOutput = publicOutput ?? output + ".pub"
    try KeyFile.make(output, key.pem, isSecret: true)
    do {
      try KeyFile.make(publicOutput, key.publicPEM, isSecret: false)
    } catch {
      KeyFile.discard(output)
      throw error
    }
    run.note(
      "made \(output) and \(publicOutput); the broker has the latter as ID.pem in the directory of its --token-keys"
    )
  }
}
