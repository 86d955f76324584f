import SluiceTLS

/// The users that have a password.
public struct Users: Sendable, ExpressibleByDictionaryLiteral {
  private var table: NameTable<PasswordHash> = [:]
  /// Verified for a name that no user has, so that it takes as long.
  private var decoy: PasswordHash?

  public init() {}

  public init(dictionaryLiteral elements: (String, PasswordHash)...) {
    self.init(elements.map { (name: $0.0, hash: $0.1) })
  }

  /// The last one of a name counts.
  public init(_ users: some Sequence<(name: String, hash: PasswordHash)>) {
    for user in users { table[user.name] = user.hash }
    chooseDecoy()
  }

  public subscript(name: String) -> PasswordHash? {
    get { table[name] }
    set {
      table[name] = newValue
      chooseDecoy()
    }
  }

  public var isEmpty: Bool { table.isEmpty }
  public var count: Int { table.count }
  /// In no order.
  public var names: [String] { table.names }

  /// Whether this is the user's password. Takes as long when there is no such user, as long as all hashes cost the same.
  func prove(_ password: String, of name: String) -> PasswordHash? {
    guard let decoy else { return nil }
    let known = table[name]
    return (known ?? decoy).matches(password) ? known : nil
  }

  /// The cost that most of the hashes have.
  var usualCost: Scrypt.Cost? { decoy?.cost }

  private mutating func chooseDecoy() {
    var counts: [Scrypt.Cost: Int] = [:]
    for hash in table.all { counts[hash.cost, default: 0] += 1 }
    // Of equally frequent costs, the highest, so that each run chooses the same.
    let usual = counts.max { ($0.value, $0.key.work) < ($1.value, $1.key.work) }?.key
    if usual != decoy?.cost { decoy = usual.map(PasswordHash.decoy) }
  }
}
