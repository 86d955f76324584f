// BLOCK
await watch([7].publisher)
