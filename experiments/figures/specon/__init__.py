"""The experiments of the SpeCon paper, made again."""
