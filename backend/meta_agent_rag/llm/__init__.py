"""The only door to any model: tiers, providers, prices, cache, budget and ledger behind `ainvoke`."""
