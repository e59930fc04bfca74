"""The experiments of the SpeCon paper, reproduced."""
