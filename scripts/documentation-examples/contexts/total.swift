// BLOCK
print(await total(of: (1...4).publisher))
